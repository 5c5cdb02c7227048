/**
 * A cluster of jobs on virtual time: jobs come, wait, run as gangs, are stopped for others, fail and are
 * queued again, and hosts go down under them. Only this keeps the clock; what starts and stops is
 * decided in scheduling-pass.ts.
 */
import { EventQueue, type Seconds, TriremeError, days } from "@trireme/core";
import { HostPool } from "./host-pool.ts";
import { type Job, type JobOutcome, type JobRecord, checkJob } from "./job.ts";
import { type RunningJob, type SchedulingRules, schedulingPass } from "./scheduling-pass.ts";

/** A host is down for a time. */
export interface HostOutage {
  readonly host: number;
  readonly from: Seconds;
  readonly to: Seconds;
}

/** What is simulated. */
export interface JobsOptions {
  readonly hosts: number;
  readonly gpusPerHost: number;
  readonly jobs: readonly Job[];
  readonly rules?: SchedulingRules;
  readonly outages?: readonly HostOutage[];
  /** Time from a start until a job computes: images, process groups, loading; 0 when left out. */
  readonly startup?: Seconds;
  /** When to stop looking; Infinity when left out. */
  readonly until?: Seconds;
}

/** What came of it. */
export interface JobsSimulation {
  /** In the order of `jobs`. */
  readonly records: readonly JobRecord[];
  /** Last event. */
  readonly end: Seconds;
  /** GPU-seconds that jobs held, of those there were from the first submission to the end. */
  readonly utilisation: number;
  /** GPU-seconds of progress that was kept, of those that jobs held. */
  readonly goodput: number;
  /** GPU-seconds lost where jobs were stopped for others. */
  readonly preemptionLoss: number;
  readonly events: number;
}

/**
 * Simulates jobs to their end.
 * @throws TriremeError "JOB" for a job that cannot be, "JOBS" for an outage of no host or time.
 */
export function simulateJobs(o: JobsOptions): JobsSimulation {
  return new Jobs(o).run();
}

interface Running extends RunningJob {
  readonly number: number;
}

interface State {
  outcome: JobOutcome;
  started: Seconds;
  ended: Seconds;
  waitsSince: Seconds;
  queued: Seconds;
  ran: Seconds;
  /** Work that is kept. */
  kept: Seconds;
  attempts: number;
  failures: number;
  preempted: number;
  interrupted: number;
  running: Running | undefined;
}

// What an event means: payload = number × 4 + event.
const event = { submit: 0, end: 1, host: 2, again: 3 } as const;

class Jobs {
  readonly #o: JobsOptions;
  readonly #pool: HostPool;
  readonly #queue: EventQueue;
  readonly #states: State[];
  /** Numbers of waiting jobs in the order of the queue. */
  readonly #waiting: number[] = [];
  readonly #running = new Set<Running>();
  readonly #used = new Map<string, number>();
  readonly #outages: readonly { host: number; at: Seconds; up: boolean }[];
  /** Outages that each host is in. */
  readonly #down: Int32Array;
  readonly #endAt: Float64Array;
  #again: Seconds = Infinity;
  #held = 0;
  #preemptionLoss = 0;

  constructor(o: JobsOptions) {
    this.#o = o;
    this.#pool = new HostPool(o.hosts, o.gpusPerHost);
    for (const job of o.jobs) checkJob(job, o.hosts * o.gpusPerHost);
    this.#queue = new EventQueue(o.jobs.length + 64);
    this.#states = o.jobs.map(() => ({
      outcome: "unfinished",
      started: Number.NaN,
      ended: Number.NaN,
      waitsSince: 0,
      queued: 0,
      ran: 0,
      kept: 0,
      attempts: 0,
      failures: 0,
      preempted: 0,
      interrupted: 0,
      running: undefined,
    }));
    this.#down = new Int32Array(o.hosts);
    this.#endAt = new Float64Array(o.jobs.length).fill(-1);
    this.#outages = (o.outages ?? []).flatMap(({ host, from, to }) => {
      if (!(host in this.#down) || !(from >= 0 && to >= from && to < Infinity)) {
        throw new TriremeError(
          "JOBS",
          `host ${host} down from ${from} s to ${to} s: name a host in 0..${o.hosts - 1} and times in order`,
        );
      }
      return [
        { host, at: from, up: false },
        { host, at: to, up: true },
      ];
    });
    for (const [i, job] of o.jobs.entries()) this.#queue.push(job.submitted, i * 4 + event.submit);
    for (const [i, { at }] of this.#outages.entries()) this.#queue.push(at, i * 4 + event.host);
  }

  run(): JobsSimulation {
    const { jobs, until = Infinity, hosts, gpusPerHost } = this.#o;
    let events = 0;
    let end = 0;
    while (this.#queue.size > 0 && this.#queue.next <= until) {
      const at = this.#queue.next;
      // All that happens at one instant comes before what is decided then.
      while (this.#queue.size > 0 && this.#queue.next === at) {
        events++;
        this.#take(this.#queue.pop());
      }
      end = at;
      this.#pass();
    }
    const stop = until === Infinity ? end : Math.max(end, until);
    for (const r of this.#running) this.#leave(r, stop, true);
    const first = jobs.reduce((least, job) => Math.min(least, job.submitted), stop);
    const room = (stop - first) * hosts * gpusPerHost;
    const kept = this.#states.reduce((sum, s, i) => sum + s.kept * jobs[i]!.gpus, 0);
    return {
      records: this.#states.map((s, i) => record(jobs[i]!, s)),
      end: stop,
      utilisation: room > 0 ? this.#held / room : 0,
      goodput: this.#held > 0 ? kept / this.#held : 1,
      preemptionLoss: this.#preemptionLoss,
      events,
    };
  }

  #take(payload: number): void {
    const i = payload >> 2;
    const { now } = this.#queue;
    switch (payload & 3) {
      case event.submit:
        this.#enqueue(i);
        break;
      case event.end:
        // Ends of attempts that were stopped before are stale.
        if (this.#endAt[i] === now && this.#states[i]!.running !== undefined) this.#ends(i);
        break;
      case event.host:
        this.#host(this.#outages[i]!);
        break;
      default:
        this.#again = Infinity;
    }
  }

  #enqueue(i: number): void {
    const { jobs } = this.#o;
    const { priority } = jobs[i]!;
    this.#states[i]!.waitsSince = this.#queue.now;
    // Behind all of its priority: found from the end, where most belong.
    let at = this.#waiting.length;
    while (at > 0 && jobs[this.#waiting[at - 1]!]!.priority < priority) at--;
    this.#waiting.splice(at, 0, i);
  }

  #pass(): void {
    const { jobs, rules = {} } = this.#o;
    if (this.#waiting.length === 0) return;
    const { now } = this.#queue;
    const depth = Math.min(rules.depth ?? 256, this.#waiting.length);
    const waiting = this.#waiting.slice(0, depth).map((i) => jobs[i]!);
    const decided = schedulingPass(now, waiting, this.#running, this.#pool, this.#used, rules);
    const numbers = decided.starts.map(({ place }) => this.#waiting[place]!);
    for (const r of decided.stops) this.#preempt(r);
    // From the back, so that places before stay what they were.
    for (const { place } of decided.starts.toReversed()) this.#waiting.splice(place, 1);
    for (const [k, { allocation }] of decided.starts.entries())
      this.#start(numbers[k]!, allocation);
    for (const r of decided.stops) this.#enqueue(r.number);
    if (decided.again < this.#again) {
      this.#again = decided.again;
      this.#queue.push(decided.again, event.again);
    }
  }

  #start(number: number, allocation: Running["allocation"]): void {
    const { jobs, startup = 0, rules = {} } = this.#o;
    const { now } = this.#queue;
    const job = jobs[number]!;
    const s = this.#states[number]!;
    s.queued += now - s.waitsSince;
    if (s.attempts++ === 0) s.started = now;
    const running: Running = { job, number, since: now, allocation };
    s.running = running;
    this.#running.add(running);
    const { limit = days(7) } = rules;
    const work = job.work - s.kept;
    const time = Math.min(startup + work, startup + (job.failsAfter ?? Infinity), limit);
    this.#endAt[number] = now + time;
    this.#queue.push(now + time, number * 4 + event.end);
  }

  /** An attempt ends of itself: done, failed, or at its limit. */
  #ends(i: number): void {
    const { startup = 0 } = this.#o;
    const s = this.#states[i]!;
    const job = this.#o.jobs[i]!;
    const r = s.running!;
    const { now } = this.#queue;
    const computed = now - r.since - startup;
    const done = s.kept + computed >= job.work * (1 - 1e-12);
    const failed = !done && computed >= (job.failsAfter ?? Infinity) * (1 - 1e-12);
    this.#free(r);
    this.#leave(r, now, done);
    s.ended = now;
    if (done) {
      s.kept = job.work;
      s.outcome = "completed";
    } else if (failed && s.failures++ < (job.requeues ?? 0)) this.#enqueue(i);
    else s.outcome = failed ? "failed" : "limit";
  }

  #preempt(r: Running): void {
    const s = this.#states[r.number]!;
    const before = s.kept;
    const ran = this.#leave(r, this.#queue.now, false);
    this.#preemptionLoss += (ran - (s.kept - before)) * r.job.gpus;
    s.preempted++;
  }

  /** Books the time of an attempt; what it computed since its last checkpoint counts if `keeps`. */
  #leave(r: Running, now: Seconds, keeps: boolean): Seconds {
    const { startup = 0 } = this.#o;
    const s = this.#states[r.number]!;
    const ran = now - r.since;
    const reached = s.kept + Math.max(0, ran - startup);
    const { checkpointEvery: every, work } = r.job;
    const saved = every === Infinity ? s.kept : Math.floor(reached / every) * every;
    s.kept = Math.min(work, Math.max(s.kept, keeps ? reached : saved));
    s.ran += ran;
    s.running = undefined;
    this.#held += ran * r.job.gpus;
    this.#running.delete(r);
    this.#endAt[r.number] = -1;
    return ran;
  }

  /** Gives the GPUs of an attempt back. */
  #free(r: Running): void {
    this.#pool.release(r.allocation);
    this.#used.set(r.job.team, this.#used.get(r.job.team)! - r.job.gpus);
  }

  #host({ host, up }: { host: number; up: boolean }): void {
    this.#down[host]! += up ? -1 : 1;
    if (up) {
      if (this.#down[host] === 0) this.#pool.setUp(host, true);
      return;
    }
    for (const r of [...this.#running].filter((each) => each.allocation.hosts.includes(host))) {
      this.#free(r);
      this.#leave(r, this.#queue.now, false);
      this.#states[r.number]!.interrupted++;
      this.#enqueue(r.number);
    }
    this.#pool.setUp(host, false);
  }
}

function record(job: Job, s: State): JobRecord {
  const { outcome, started, ended, queued, ran, kept, attempts, preempted, interrupted } = s;
  const lost = Math.max(0, ran - kept);
  return { job, outcome, started, ended, queued, ran, lost, attempts, preempted, interrupted };
}
