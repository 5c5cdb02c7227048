/** Published counts of what interrupts training: the weights a failure generator draws from. */

/** What a fault needs: a new host, a restart where it stands, or a change by people. */
export type FaultClass = "host" | "network" | "software" | "planned" | "silent";

export interface Cause {
  readonly name: string;
  readonly count: number;
  readonly class: FaultClass;
}

const cause = (name: string, count: number, kind: FaultClass): Cause => ({
  name,
  count,
  class: kind,
});

/**
 * 419 unexpected interruptions of Llama 3 405B, 16,384 H100, 54 days (Llama 3, table 5), by count:
 * the printed 30.1 % for faulty GPUs is 148/419 = 35.3 %.
 */
export const llama3Causes: readonly Cause[] = [
  cause("faulty GPU", 148, "host"),
  cause("GPU HBM3", 72, "host"),
  cause("software bug", 54, "software"),
  cause("network switch or cable", 35, "network"),
  cause("host maintenance", 32, "planned"),
  cause("GPU SRAM", 19, "host"),
  cause("GPU system processor", 17, "host"),
  cause("NIC", 7, "host"),
  cause("NCCL watchdog timeout", 7, "network"),
  cause("silent data corruption", 6, "silent"),
  cause("GPU thermal interface", 6, "host"),
  cause("SSD", 3, "host"),
  cause("power supply", 3, "host"),
  cause("server chassis", 2, "host"),
  cause("IO expansion board", 2, "host"),
  cause("dependency", 2, "software"),
  cause("CPU", 2, "host"),
  cause("system memory", 2, "host"),
];

/** ByteRobust (SOSP'25), table 1: 55,365 incidents of 778,135 jobs in three months. */
export const byteRobustCauses: readonly Cause[] = [
  cause("CUDA error", 19_968, "host"),
  cause("code or data change", 9_582, "planned"),
  cause("CPU overload", 6_095, "host"),
  cause("CPU out of memory", 5_567, "software"),
  cause("hang", 5_506, "network"),
  cause("disk space", 2_755, "host"),
  cause("InfiniBand error", 1_599, "network"),
  cause("file system mount", 1_176, "host"),
  cause("HDFS error", 1_104, "software"),
  cause("container error", 781, "software"),
  cause("MFU decline", 442, "host"),
  cause("kernel panic", 203, "host"),
  cause("GPU memory", 188, "host"),
  cause("NaN", 148, "silent"),
  cause("external service", 128, "software"),
  cause("GPU unavailable", 76, "host"),
  cause("disk fault", 47, "host"),
];

/** The 29 reasons of Acme (NSDI'24), table 3, Mar-Aug 2023. */
export const acmeCauses: readonly Cause[] = [
  cause("NVLinkError", 54, "host"),
  cause("CUDAError", 21, "host"),
  cause("NodeFailure", 16, "host"),
  cause("ECCError", 12, "host"),
  cause("NetworkError", 12, "network"),
  cause("ConnectionError", 147, "network"),
  cause("S3StorageError", 10, "network"),
  cause("NCCLTimeoutError", 6, "network"),
  cause("NCCLRemoteError", 3, "network"),
  cause("DataloaderKilled", 6, "software"),
  cause("AttributeError", 67, "software"),
  cause("OutOfMemoryError", 14, "software"),
  cause("RuntimeError", 65, "software"),
  cause("AssertionError", 105, "software"),
  cause("ValueError", 33, "software"),
  cause("ZeroDivisionError", 5, "software"),
  cause("ModelLoadingError", 104, "software"),
  cause("DatasetLoadingError", 5, "software"),
  cause("FileNotFoundError", 568, "software"),
  cause("OSError", 266, "software"),
  cause("TypeError", 620, "software"),
  cause("NameError", 18, "software"),
  cause("PermissionError", 7, "software"),
  cause("ImportError", 111, "software"),
  cause("KeyError", 260, "software"),
  cause("SyntaxError", 10, "software"),
  cause("ArgumentError", 3, "software"),
  cause("CalledProcessError", 4, "software"),
  cause("IndexError", 23, "software"),
];

/** Failures per host-day (8 GPUs a host) of published systems. */
export const failureRates: Readonly<Record<"rsc-1" | "rsc-2" | "llama3-405b", number>> = {
  /** Meta RSC-1, 16k A100, jobs of more than 128 GPUs. */
  "rsc-1": 6.5e-3,
  /** Meta RSC-2, 8k A100. */
  "rsc-2": 2.34e-3,
  /** 419 interruptions in 54 days on 2,048 hosts. */
  "llama3-405b": 419 / (54 * 2048),
};
