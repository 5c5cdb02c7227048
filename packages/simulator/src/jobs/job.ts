/** Jobs of a shared cluster, and what became of them. */
import { type Seconds, TriremeError } from "@trireme/core";

/** A job as it is submitted. */
export interface Job {
  readonly id: string;
  /** Whose quota it counts against. */
  readonly team: string;
  /** Kind of work: "pretrain", "evaluation", as statistics are to be grouped. */
  readonly kind: string;
  /** All start together or not at all; 0 for a job of processors alone, which never waits. */
  readonly gpus: number;
  /** The higher comes first. */
  readonly priority: number;
  readonly submitted: Seconds;
  /** Time it computes for until it is done. */
  readonly work: Seconds;
  /** Progress is kept in steps of this; what comes after the last is lost when it is stopped. Infinity: never. */
  readonly checkpointEvery: Seconds;
  /** Each attempt fails after so long, if its work is not done before; it never does when left out. */
  readonly failsAfter?: Seconds;
  /** How often it is queued again after failing of itself; 0 when left out. */
  readonly requeues?: number;
}

/** How a job ended. */
export type JobOutcome = "completed" | "failed" | "limit" | "unfinished";

/** What became of a job. */
export interface JobRecord {
  readonly job: Job;
  readonly outcome: JobOutcome;
  /** First start, and last end; NaN where it never started. */
  readonly started: Seconds;
  readonly ended: Seconds;
  /** Time in the queue, all waits together. */
  readonly queued: Seconds;
  /** Time on GPUs, all attempts together, and what of it was lost or spent on restarting. */
  readonly ran: Seconds;
  readonly lost: Seconds;
  readonly attempts: number;
  /** Times that it was stopped for a job of higher priority, and by a host that failed. */
  readonly preempted: number;
  readonly interrupted: number;
}

/** Throws TriremeError "JOB" for a job that none can be. */
export function checkJob(job: Job, gpus: number): void {
  const { id, submitted, work, checkpointEvery, failsAfter = 1, requeues = 0, priority } = job;
  if (!Number.isSafeInteger(job.gpus) || job.gpus < 0 || job.gpus > gpus) {
    throw new TriremeError(
      "JOB",
      `job ${id} of ${job.gpus} GPUs: give an integer in 0..${gpus}, the cluster's`,
    );
  }
  const times = submitted >= 0 && work >= 0 && checkpointEvery > 0 && failsAfter > 0;
  if (!times || !Number.isFinite(submitted + work + priority) || !(requeues >= 0)) {
    throw new TriremeError(
      "JOB",
      `job ${id}: submitted ${submitted} s, work ${work} s, priority ${priority}, checkpoint every ${checkpointEvery} s, fails after ${job.failsAfter} s, ${requeues} requeues; give times from 0 up and intervals above 0`,
    );
  }
}
