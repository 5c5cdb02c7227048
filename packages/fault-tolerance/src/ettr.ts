/**
 * Goodput: the share of wall time that moved training forward. Closed forms of Meta's "Revisiting
 * Reliability" (RSC, HPCA'25), MegaScale's effective training time and ByteRobust's ETTR.
 */
import { TriremeError, days, type Seconds } from "@trireme/core";

export interface ExpectedEttrOptions {
  readonly hosts: number;
  /** Failures per host-day (RSC-1: 6.50e-3). */
  readonly failuresPerHostDay: number;
  /** Time from a checkpoint to the next. */
  readonly interval: Seconds;
  /** Time to initialise after a restart (u0 of the paper). */
  readonly restart: Seconds;
  /** Mean queueing per interruption; 0 by default. */
  readonly queue?: Seconds;
  /** Time one checkpoint blocks training; 0 by default (written in the background). */
  readonly write?: Seconds;
}

/** Mean time to failure of a job: 1 / (hosts × rate); Infinity where nothing fails. */
export function meanTimeToFailure(hosts: number, failuresPerHostDay: number): Seconds {
  check("hosts", hosts);
  check("failuresPerHostDay", failuresPerHostDay);
  return days(1) / (hosts * failuresPerHostDay);
}

/**
 * E[ETTR] ≈ (1 − λ(u0 + Δt/2)) / (1 + λq + w/Δt), λ = hosts × rate. With w = 0 it is the paper's
 * form for background checkpoints (v1), with q = 0 the one for blocking checkpoints (v2).
 * First order in λ: it is clamped to 0 where failures come faster than progress.
 */
export function expectedEttr(options: ExpectedEttrOptions): number {
  const { hosts, failuresPerHostDay, interval, restart, queue = 0, write = 0 } = options;
  for (const [name, value] of Object.entries({
    hosts,
    failuresPerHostDay,
    restart,
    queue,
    write,
  })) {
    check(name, value);
  }
  if (!(interval > 0)) {
    throw new TriremeError(
      "ETTR",
      `interval = ${interval} s: checkpoints need an interval above 0`,
    );
  }
  const rate = (hosts * failuresPerHostDay) / days(1);
  return Math.max(0, 1 - rate * (restart + interval / 2)) / (1 + rate * queue + write / interval);
}

/**
 * E[ETTR] of a memoryless failure process, exact: each segment of interval + write must pass without
 * a failure, and each failure costs a restart (itself exposed to failures).
 * E[T] = (1/λ) · e^{λR} · (e^{λ(Δt+w)} − 1), Daly (2006), equation 13.
 */
export function exactEttr(options: ExpectedEttrOptions): number {
  const { hosts, failuresPerHostDay, interval, restart, queue = 0, write = 0 } = options;
  expectedEttr(options);
  const rate = (hosts * failuresPerHostDay) / days(1);
  if (rate === 0) return interval / (interval + write);
  return (
    (interval * rate) / (Math.exp(rate * (restart + queue)) * Math.expm1(rate * (interval + write)))
  );
}

/** MegaScale's effective training time rate: iterations × iteration time / total time. */
export function effectiveTrainingTime(steps: number, step: Seconds, total: Seconds): number {
  check("steps", steps);
  check("step", step);
  if (!(total > 0)) throw new TriremeError("ETTR", `total = ${total} s: a rate needs time above 0`);
  return (steps * step) / total;
}

/** A span of wall time in which training moved forward; work lost later must not be listed. */
export interface ProductiveSpan {
  readonly start: Seconds;
  readonly end: Seconds;
}

/** Share of [from, to] that the spans (disjoint, in any order) cover: ETTR, cumulative from 0. */
export function ettrBetween(spans: readonly ProductiveSpan[], from: Seconds, to: Seconds): number {
  if (!(to > from))
    throw new TriremeError("ETTR", `[${from}, ${to}] s is empty: ETTR needs from < to`);
  let productive = 0;
  for (const { start, end } of spans) {
    productive += Math.max(0, Math.min(end, to) - Math.max(start, from));
  }
  return productive / (to - from);
}

/** ETTR over the window that ends at each sample (ByteRobust: 1 h), shorter at the start. */
export function slidingEttr(
  spans: readonly ProductiveSpan[],
  samples: readonly Seconds[],
  window: Seconds,
): readonly number[] {
  check("window", window);
  return samples.map((at) => ettrBetween(spans, Math.max(0, at - window), at));
}

function check(name: string, value: number): void {
  if (!(value >= 0)) throw new TriremeError("ETTR", `${name} = ${value} must be 0 or more`);
}
