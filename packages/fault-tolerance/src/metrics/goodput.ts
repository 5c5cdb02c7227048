/**
 * Goodput of jobs and of a cluster by RSC's accounting (HPCA'25, section II-D): a job's wall time is
 * W = Q + R + U, time in queue, productive run time, and unproductive run time.
 */
import { TriremeError, type Seconds, hours } from "@trireme/core";

/** A job run, with its restarts, from submission to end. */
export interface JobTimes {
  readonly gpus: number;
  /** Q: waiting to be scheduled, first and after every interruption. */
  readonly queued: Seconds;
  /** R: moved training forward and was kept. */
  readonly productive: Seconds;
  /** U: starting up, checkpointing, and work that was lost. */
  readonly unproductive: Seconds;
}

/** A job's ETTR = R / (Q + R + U). A job without wall time is refused. */
export function jobEttr({ queued, productive, unproductive }: JobTimes): number {
  const wall = queued + productive + unproductive;
  if (!(queued >= 0 && productive >= 0 && unproductive >= 0 && wall > 0)) {
    throw new TriremeError(
      "GOODPUT",
      `Q + R + U = ${queued} + ${productive} + ${unproductive} s: use 0 or more, above 0 together`,
    );
  }
  return productive / wall;
}

/**
 * Goodput of a cluster: productive GPU time of its jobs over all the GPU time there was.
 * @throws TriremeError "GOODPUT" when there was none, or the jobs ran for more than there was.
 */
export function clusterGoodput(jobs: Iterable<JobTimes>, gpus: number, elapsed: Seconds): number {
  const capacity = gpus * elapsed;
  let [productive, scheduled] = [0, 0];
  for (const job of jobs) {
    productive += job.gpus * job.productive;
    scheduled += job.gpus * (job.productive + job.unproductive);
  }
  // Sums of many floats may exceed a full cluster in their last digits.
  if (!(capacity > 0 && productive >= 0 && scheduled <= capacity * (1 + 1e-9))) {
    throw new TriremeError(
      "GOODPUT",
      `jobs ran for ${scheduled} GPU-seconds, but ${gpus} GPUs for ${elapsed} s are ${capacity}`,
    );
  }
  return productive / capacity;
}

/**
 * GPU time that one failure costs, by RSC's rule: half a checkpoint interval on average, and never
 * more than the job had run; for hourly checkpoints min(run time, 30 min) × GPUs.
 */
export function failureLoss(ran: Seconds, gpus: number, interval: Seconds = hours(1)): number {
  if (!(ran >= 0 && gpus >= 0 && interval >= 0)) {
    throw new TriremeError(
      "GOODPUT",
      `${gpus} GPUs after ${ran} s with a checkpoint every ${interval} s: use 0 or more`,
    );
  }
  return Math.min(ran, interval / 2) * gpus;
}
