/** The published summary of a job trace, to hold a synthetic or a partial one against. */
import { TriremeError, type Seconds, median } from "@trireme/core";
import type { AcmeJob } from "./acme-trace.ts";

export interface TraceSummary {
  /** Jobs that asked for a GPU; all figures are of these. */
  readonly jobs: number;
  readonly run: { readonly mean: Seconds; readonly median: Seconds };
  readonly queue: { readonly mean: Seconds; readonly median: Seconds };
  readonly meanGpus: number;
  /** Share of jobs, and of GPU time, by how they ended; TIMEOUT and NODE_FAIL count as failed. */
  readonly jobShare: Shares;
  readonly gpuTimeShare: Shares;
  /** Rows whose duration is not end − start, or whose GPU time is not duration × GPUs, by over 1 s. */
  readonly inconsistent: number;
}

export interface Shares {
  readonly completed: number;
  readonly cancelled: number;
  readonly failed: number;
}

/** The figures that Acme's `cluster_summary.csv` publishes: 1,414 s and 122 s of run on Seren. */
export function summariseTrace(jobs: Iterable<AcmeJob>): TraceSummary {
  const runs: Seconds[] = [];
  const queues: Seconds[] = [];
  const count = { completed: 0, cancelled: 0, failed: 0 };
  const time = { completed: 0, cancelled: 0, failed: 0 };
  let [gpus, inconsistent] = [0, 0];
  for (const job of jobs) {
    if (job.gpus === 0) continue;
    runs.push(job.duration);
    queues.push(job.queued);
    gpus += job.gpus;
    const end =
      job.state === "COMPLETED" ? "completed" : job.state === "CANCELLED" ? "cancelled" : "failed";
    count[end]++;
    time[end] += job.gpuSeconds;
    const late = Math.abs(job.ended - job.started - job.duration) > 1;
    if (late || Math.abs(job.gpuSeconds - job.duration * job.gpus) > job.gpus) inconsistent++;
  }
  if (runs.length === 0)
    throw new TriremeError("ACME_TRACE", "no job of the trace asked for a GPU");
  return {
    jobs: runs.length,
    run: averages(runs),
    queue: averages(queues),
    meanGpus: gpus / runs.length,
    jobShare: shares(count),
    gpuTimeShare: shares(time),
    inconsistent,
  };
}

function averages(values: readonly number[]): { mean: number; median: number } {
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  return { mean, median: median(values) };
}

function shares(of: { completed: number; cancelled: number; failed: number }): Shares {
  const total = of.completed + of.cancelled + of.failed;
  const share = (x: number): number => (total === 0 ? 0 : x / total);
  return {
    completed: share(of.completed),
    cancelled: share(of.cancelled),
    failed: share(of.failed),
  };
}
