/**
 * Whether hosts should copy a data set from shared storage to a disk of their own before training, and
 * how many loader workers each needs. Both are what large runs on shared clusters come down to: stage
 * what is read more than once, and add workers until training no longer waits.
 */
import { type Bytes, type BytesPerSecond, type Seconds, TriremeError } from "@trireme/core";

/** What is read, by whom, and from where. */
export interface StagingOptions {
  /** Bytes of the data set as it will be read. */
  readonly dataset: Bytes;
  /** Times each sample is read. */
  readonly epochs: number;
  readonly hosts: number;
  /** What the shared storage gives to all hosts together. */
  readonly sharedBandwidth: BytesPerSecond;
  /** What it gives to one host at most: its network. */
  readonly hostBandwidth: BytesPerSecond;
  /** What a host's own disk reads. */
  readonly localBandwidth: BytesPerSecond;
  /** Room on a host's own disk; 0 without one. */
  readonly localCapacity: Bytes;
  /** What a host reads while it trains at full speed. */
  readonly demand: BytesPerSecond;
  /**
   * Whether a host copies only the shards that it will read (1 / hosts of the data), which asks for an
   * order of samples within hosts; else it copies all. Default false.
   */
  readonly sharded?: boolean;
}

/** The decision, with the times it rests on. */
export interface StagingPlan {
  readonly copy: boolean;
  /** Bytes each host would copy. */
  readonly copyBytes: Bytes;
  /** Time of the copy, all hosts at once, before training starts. */
  readonly copyTime: Seconds;
  /** Time to read all epochs from shared storage, training included. */
  readonly sharedTime: Seconds;
  /** The same from local disks, the copy included; Infinity where it does not fit. */
  readonly localTime: Seconds;
  /** Epochs from which on copying pays; Infinity where it never does. */
  readonly breakEven: number;
  readonly reason: string;
}

/** Decides. A model: rates are steady, all hosts read alike, the copy ends before training starts. */
export function stagingPlan(options: StagingOptions): StagingPlan {
  const { sharded = false, ...numbers } = options;
  for (const [name, value] of Object.entries(numbers)) {
    const least = name === "localCapacity" ? value >= 0 : value > 0;
    if (!least) throw new TriremeError("STAGING", `${name} ${value} is not positive`);
  }
  const {
    dataset,
    epochs,
    hosts,
    sharedBandwidth,
    hostBandwidth,
    localBandwidth,
    localCapacity,
    demand,
  } = numbers;
  const fromShared = Math.min(hostBandwidth, sharedBandwidth / hosts);
  // In an epoch every host reads its share, as fast as it trains or as its source allows.
  const share = dataset / hosts;
  const sharedEpoch = share / Math.min(demand, fromShared);
  const localEpoch = share / Math.min(demand, localBandwidth);
  const copyBytes = sharded ? share : dataset;
  const copyTime = copyBytes / fromShared;
  const fits = copyBytes <= localCapacity;
  const sharedTime = epochs * sharedEpoch;
  const localTime = fits ? copyTime + epochs * localEpoch : Infinity;
  const gain = sharedEpoch - localEpoch;
  const breakEven = fits && gain > 0 ? copyTime / gain : Infinity;
  const copy = localTime < sharedTime;
  const epochsText = `${breakEven.toPrecision(3)} epochs`;
  const reason = !fits
    ? `a host would copy ${copyBytes} bytes, its disk has room for ${localCapacity}`
    : fromShared >= demand
      ? `shared storage gives each host ${fromShared} bytes/s, it needs ${demand}`
      : gain <= 0
        ? `local disks read ${localBandwidth} bytes/s, no faster than shared storage's ${fromShared}`
        : copy
          ? `copying pays after ${epochsText}, the run has ${epochs}`
          : `copying would pay after ${epochsText}, the run has only ${epochs}`;
  return { copy, copyBytes, copyTime, sharedTime, localTime, breakEven, reason };
}

/** What was measured at a number of workers. */
export interface WorkerMeasurement {
  readonly workers: number;
  /** Share of its time that training waited for data. */
  readonly waiting: number;
}

/**
 * The number of workers to try next: doubled while training waits for more than `tolerance` of its time
 * and the last doubling helped, else the fewest seen that are good enough. The same number as the last
 * says that the search is over; so does a number that was measured before, as it was gone back to.
 * `limit` is the cores there are for loaders.
 */
export function nextWorkers(
  measured: readonly WorkerMeasurement[],
  limit: number,
  tolerance = 0.01,
): number {
  if (!Number.isInteger(limit) || limit < 1)
    throw new TriremeError("STAGING", `limit ${limit} is not a positive integer`);
  const odd = measured.find(
    ({ workers, waiting }) => !(Number.isInteger(workers) && workers >= 1 && waiting >= 0),
  );
  if (odd !== undefined) {
    throw new TriremeError(
      "STAGING",
      `${odd.workers} workers with ${odd.waiting} of the time waiting; use a positive integer and a share`,
    );
  }
  const last = measured.at(-1);
  if (last === undefined) return 1;
  const enough = measured
    .filter(({ waiting }) => waiting <= tolerance)
    .map(({ workers }) => workers);
  if (enough.length > 0) return Math.min(...enough);
  const before = measured.at(-2);
  // Less than a tenth won by twice the workers: something else is short, such as the disk.
  const stalled =
    before !== undefined && last.workers > before.workers && last.waiting > 0.9 * before.waiting;
  if (stalled) return before.workers;
  if (measured.slice(0, -1).some(({ workers }) => workers === last.workers)) return last.workers;
  return Math.min(limit, 2 * last.workers);
}
