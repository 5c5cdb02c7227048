/** Jobs of the Acme trace, to be replayed under other rules or on another cluster. */
import { type Seconds, hours } from "@trireme/core";
import type { AcmeJob } from "@trireme/fault-tolerance";
import type { Job } from "./job.ts";

/** How a trace is read. */
export interface AcmeJobsOptions {
  /** Priority by kind of work; others have 0. Pretraining has 2 and evaluation 1 when left out. */
  readonly priorities?: Readonly<Record<string, number>>;
  /** Checkpoint interval of all jobs; an hour when left out. */
  readonly checkpointEvery?: Seconds;
}

const usual: Readonly<Record<string, number>> = { Pretrain: 2, Evaluation: 1 };

/**
 * Jobs of the trace in order of submission, times from the first one on. A job's work is the time that
 * it ran in the trace, however it ended: users had it for that long. Jobs that never ran have none.
 */
export function acmeJobs(trace: Iterable<AcmeJob>, options: AcmeJobsOptions = {}): Job[] {
  const { priorities = usual, checkpointEvery = hours(1) } = options;
  const all = [...trace].sort((a, b) => a.submitted - b.submitted);
  const first = all[0]?.submitted ?? 0;
  return all.map((job) => ({
    id: job.id,
    team: job.user,
    kind: job.type,
    gpus: job.gpus,
    priority: priorities[job.type] ?? 0,
    submitted: job.submitted - first,
    work: job.ended - job.started,
    checkpointEvery,
  }));
}
