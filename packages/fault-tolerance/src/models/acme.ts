/**
 * The 29 reasons of Acme (Hu et al., NSDI'24), table 3, March to August 2023: 281 failures of
 * infrastructure, 404 of the framework, 1,890 of scripts. Counts and shares of GPU time are exact;
 * demand, time to failure and time to restart stand for infrastructure only, and of those the average
 * times to failure of ECCError and S3StorageError are confirmed, the others reported second-hand.
 */
import type { Cause, CausePart, FaultClass } from "./causes.ts";
import { type Seconds, minutes } from "@trireme/core";

export type AcmeCategory = "infrastructure" | "framework" | "script";

/** Average and median, as the table gives both. */
export interface AverageMedian {
  readonly average: number;
  readonly median: number;
}

export interface AcmeReason extends Cause {
  readonly category: AcmeCategory;
  /** Percent of the GPU time of all failed jobs. */
  readonly gpuTimePercent: number;
  readonly detail?: AcmeDetail;
}

export interface AcmeDetail {
  readonly gpus: AverageMedian;
  /** Seconds from a job's start to its failure. */
  readonly timeToFailure: AverageMedian;
  /** Seconds from the failure to the restart. */
  readonly timeToRestart: AverageMedian;
}

/** Columns of one row: GPUs, time to failure, time to restart (minutes), each average and median. */
type Row = readonly [number, number, number, number, number, number];

const reason =
  (category: AcmeCategory) =>
  (
    name: string,
    count: number,
    kind: FaultClass,
    part: CausePart,
    gpuTimePercent: number,
    row?: Row,
  ): AcmeReason => ({
    name,
    count,
    class: kind,
    part,
    category,
    gpuTimePercent,
    ...(row && { detail: detailOf(row) }),
  });

const detailOf = ([gpus, gpusMedian, failure, failureMedian, restart, restartMedian]: Row) => ({
  gpus: { average: gpus, median: gpusMedian },
  timeToFailure: inMinutes(failure, failureMedian),
  timeToRestart: inMinutes(restart, restartMedian),
});

const inMinutes = (average: Seconds, median: Seconds): AverageMedian => ({
  average: minutes(average),
  median: minutes(median),
});

const infrastructure = reason("infrastructure");
const framework = reason("framework");
const script = reason("script");

export const acmeReasons: readonly AcmeReason[] = [
  infrastructure(
    "NVLinkError",
    54,
    "host",
    "accelerator",
    30.25,
    [800, 896, 868.1, 155.3, 95.6, 0.2],
  ),
  infrastructure("CUDAError", 21, "host", "accelerator", 15.77, [847, 1024, 923.2, 586, 78.3, 2]),
  infrastructure("NodeFailure", 16, "host", "host", 14.3, [712, 768, 1288.8, 535.8, 102.8, 21.5]),
  infrastructure("ECCError", 12, "host", "accelerator", 11.0, [680, 768, 1303.4, 1192.3, 2.8, 1.8]),
  infrastructure("NetworkError", 12, "network", "nic", 4.53, [758, 768, 549.6, 310.1, 592.1, 7.4]),
  infrastructure("ConnectionError", 147, "network", "job", 3.44, [29, 1, 51.9, 0.5, 0.8, 0]),
  infrastructure("S3StorageError", 10, "network", "job", 2.12, [422, 256, 2317.8, 202.2, 6.2, 0.2]),
  infrastructure("NCCLTimeoutError", 6, "network", "nic", 0.5, [596, 512, 159.7, 48.1, 66.7, 43.6]),
  infrastructure("NCCLRemoteError", 3, "network", "nic", 0.15, [1152, 1024, 50.5, 22.6, 0, 0.7]),
  framework("DataloaderKilled", 6, "software", "job", 4.38),
  framework("AttributeError", 67, "software", "job", 3.9),
  framework("OutOfMemoryError", 14, "software", "job", 3.28),
  framework("RuntimeError", 65, "software", "job", 1.72),
  framework("AssertionError", 105, "software", "job", 1.24),
  framework("ValueError", 33, "software", "job", 0.16),
  framework("ZeroDivisionError", 5, "software", "job", 0.03),
  framework("ModelLoadingError", 104, "software", "job", 0),
  framework("DatasetLoadingError", 5, "software", "job", 0),
  script("FileNotFoundError", 568, "software", "job", 2.83),
  script("OSError", 266, "software", "job", 0.28),
  script("TypeError", 620, "software", "job", 0.06),
  script("NameError", 18, "software", "job", 0.02),
  script("PermissionError", 7, "software", "job", 0.01),
  script("ImportError", 111, "software", "job", 0.01),
  script("KeyError", 260, "software", "job", 0.01),
  script("SyntaxError", 10, "software", "job", 0),
  script("ArgumentError", 3, "software", "job", 0),
  script("CalledProcessError", 4, "software", "job", 0),
  script("IndexError", 23, "software", "job", 0),
];
