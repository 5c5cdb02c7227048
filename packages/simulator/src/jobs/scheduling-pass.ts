/**
 * The job scheduler's decision: which waiting jobs start now, and which running ones stop for them.
 * Jobs come in order of priority, then of waiting; each starts whole or not at all; a job that does not
 * fit stops jobs of lower priority that have had their protected time, the lowest and the youngest first;
 * jobs behind it may go ahead where they fit (Kokolis et al., Revisiting Reliability in Large-Scale
 * Machine Learning Research Clusters, HPCA 2025, §II-B: gangs, preemption after two hours).
 */
import { type Seconds, hours } from "@trireme/core";
import type { Allocation, HostPool } from "./host-pool.ts";
import type { Job } from "./job.ts";

/** Rules of a scheduler. */
export interface SchedulingRules {
  /** A running job is not stopped for another before this; two hours when left out. */
  readonly protectedFor?: Seconds;
  /** Whether jobs start ahead of one that does not fit; true when left out. */
  readonly backfill?: boolean;
  /** Waiting jobs that are looked at in one pass; 256 when left out. */
  readonly depth?: number;
  /** Most GPUs of a team at once; teams that are not named have no limit. */
  readonly quotas?: Readonly<Record<string, number>>;
  /** Longest run of one attempt; seven days when left out. */
  readonly limit?: Seconds;
}

/** A job that runs. */
export interface RunningJob {
  readonly job: Job;
  readonly since: Seconds;
  readonly allocation: Allocation;
}

/** What a pass decides. GPUs of `starts` are taken from the pool, those of `stops` given back. */
export interface SchedulingDecision<R extends RunningJob> {
  readonly stops: readonly R[];
  readonly starts: readonly { readonly place: number; readonly allocation: Allocation }[];
  /** When a job that waits may stop others at the earliest; Infinity for none. */
  readonly again: Seconds;
}

/**
 * Decides at `now`. `waiting` is in the order of the queue, `running` in order of start; `used` holds
 * the GPUs of each team and is kept up to date.
 */
export function schedulingPass<R extends RunningJob>(
  now: Seconds,
  waiting: readonly Job[],
  running: ReadonlySet<R>,
  pool: HostPool,
  used: Map<string, number>,
  rules: SchedulingRules,
): SchedulingDecision<R> {
  const { protectedFor = hours(2), backfill = true, depth = 256, quotas = {} } = rules;
  const stops: R[] = [];
  const starts: { place: number; allocation: Allocation }[] = [];
  let again = Infinity;
  let blocked = false;
  const last = Math.min(depth, waiting.length);
  for (let place = 0; place < last; place++) {
    const job = waiting[place]!;
    const own = used.get(job.team) ?? 0;
    if (own + job.gpus > (quotas[job.team] ?? Infinity)) continue;
    let allocation = pool.take(job.gpus);
    if (allocation === undefined && !blocked) {
      const found = victims(now, job, running, stops, pool, protectedFor);
      again = Math.min(again, found.again);
      for (const victim of found.stop) {
        stops.push(victim);
        pool.release(victim.allocation);
        used.set(victim.job.team, used.get(victim.job.team)! - victim.job.gpus);
      }
      if (found.stop.length > 0) allocation = pool.take(job.gpus);
    }
    if (allocation === undefined) {
      if (!backfill) break;
      // Only the first that waits may stop others: those behind would take its place.
      blocked = true;
      continue;
    }
    starts.push({ place, allocation });
    used.set(job.team, (used.get(job.team) ?? 0) + job.gpus);
  }
  return { stops, starts, again };
}

/** Jobs to stop so that `job` fits: none when that takes a protected one. */
function victims<R extends RunningJob>(
  now: Seconds,
  job: Job,
  running: ReadonlySet<R>,
  stopped: readonly R[],
  pool: HostPool,
  protectedFor: Seconds,
): { readonly stop: readonly R[]; readonly again: Seconds } {
  const candidates: R[] = [];
  let again = Infinity;
  for (const r of running) {
    if (r.job.priority >= job.priority || r.job.gpus === 0 || stopped.includes(r)) continue;
    if (r.since + protectedFor <= now) candidates.push(r);
    else again = Math.min(again, r.since + protectedFor);
  }
  candidates.sort((a, b) => a.job.priority - b.job.priority || b.since - a.since);
  const fits = (chosen: readonly R[]): boolean =>
    pool.fitsWithout(
      job.gpus,
      chosen.map((c) => c.allocation),
    );
  if (!fits(candidates)) return { stop: [], again };
  // More victims never fit worse: the least number of them by bisection.
  let [low, high] = [1, candidates.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (fits(candidates.slice(0, middle))) high = middle;
    else low = middle + 1;
  }
  const chosen = candidates.slice(0, low);
  // Those that turn out not to be needed go on.
  for (let i = chosen.length - 2; i >= 0; i--) {
    const rest = chosen.filter((_, k) => k !== i);
    if (fits(rest)) chosen.splice(i, 1);
  }
  return { stop: chosen, again: Infinity };
}
