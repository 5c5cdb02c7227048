/** From a job trace to what a simulation replays: a law of the time to failure, or the failures. */
import { TriremeError, type Seconds } from "@trireme/core";
import type { AcmeJob, AcmeState } from "./acme-trace.ts";
import type { FailureLaw } from "./law.ts";

export interface TraceFailureOptions {
  /** Least GPUs of a job that counts; 1 by default. */
  readonly gpus?: number;
  /** Ends that are failures; FAILED and NODE_FAIL by default. */
  readonly states?: readonly AcmeState[];
}

/**
 * Times to failure of the jobs that failed, as a law. Jobs that ended well say nothing of when they
 * would have failed and are left out, so the law is of a failing job, not of a host.
 * @throws TriremeError "LAW" when no job counts.
 */
export function traceLaw(jobs: Iterable<AcmeJob>, options: TraceFailureOptions = {}): FailureLaw {
  const times = [...failedJobs(jobs, options)].map((job) => failureOf(job) - job.started);
  if (times.length === 0) {
    const { gpus = 1, states = failures } = options;
    throw new TriremeError("LAW", `no job of ${gpus} GPUs or more ended as ${states.join(" or ")}`);
  }
  return { kind: "trace", times: times.toSorted((a, b) => a - b) };
}

export interface TraceFailure {
  /** Seconds since 1970, as in the trace. */
  readonly time: Seconds;
  readonly job: AcmeJob;
}

/** The failures themselves in order of time, to be replayed as they were. */
export function traceFailures(
  jobs: Iterable<AcmeJob>,
  options: TraceFailureOptions = {},
): TraceFailure[] {
  return [...failedJobs(jobs, options)]
    .map((job) => ({ time: failureOf(job), job }))
    .toSorted((a, b) => a.time - b.time);
}

const failures: readonly AcmeState[] = ["FAILED", "NODE_FAIL"];

function* failedJobs(
  jobs: Iterable<AcmeJob>,
  { gpus = 1, states = failures }: TraceFailureOptions,
): Generator<AcmeJob> {
  for (const job of jobs) if (job.gpus >= gpus && states.includes(job.state)) yield job;
}

/** When the job failed: the trace's own time where it gives one, and never before the start. */
function failureOf(job: AcmeJob): Seconds {
  return Math.max(job.started, job.failed ?? job.ended);
}
