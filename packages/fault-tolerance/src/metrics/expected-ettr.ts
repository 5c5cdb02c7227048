/**
 * Expected goodput, in closed form: Meta's "Revisiting Reliability" (RSC, Kokolis et al., HPCA'25),
 * first order in the failure rate, and Daly's exact form for memoryless failures.
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
  checkOptions(options);
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
  checkOptions(options);
  const rate = (hosts * failuresPerHostDay) / days(1);
  if (rate === 0) return interval / (interval + write);
  return (
    (interval * rate) / (Math.exp(rate * (restart + queue)) * Math.expm1(rate * (interval + write)))
  );
}

function checkOptions(options: ExpectedEttrOptions): void {
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
  if (!(interval > 0 && interval < Infinity)) {
    throw new TriremeError(
      "ETTR",
      `interval = ${interval} s: checkpoints need an interval above 0, and a finite one`,
    );
  }
}

function check(name: string, value: number): void {
  if (value >= 0 && value < Infinity) return;
  throw new TriremeError("ETTR", `${name} = ${value} must be 0 or more, and finite`);
}
