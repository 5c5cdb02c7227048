/** Published counts of what interrupts training: the weights a failure generator draws from. */

/** What a fault needs: a new host, a restart where it stands, or a change by people. */
export type FaultClass = "host" | "network" | "software" | "planned" | "silent";

/** The part that fails: what a failure source has one of per device, per NIC, per host or per job. */
export type CausePart = "accelerator" | "nic" | "host" | "job";

export interface Cause {
  readonly name: string;
  readonly count: number;
  readonly class: FaultClass;
  readonly part: CausePart;
}

const cause = (name: string, count: number, kind: FaultClass, part: CausePart): Cause => ({
  name,
  count,
  class: kind,
  part,
});

/**
 * 419 unexpected interruptions of Llama 3 405B, 16,384 H100, 54 days (Llama 3, table 5), by count:
 * the printed 30.1 % for faulty GPUs is 148/419 = 35.3 %.
 */
export const llama3Causes: readonly Cause[] = [
  cause("faulty GPU", 148, "host", "accelerator"),
  cause("GPU HBM3", 72, "host", "accelerator"),
  cause("software bug", 54, "software", "job"),
  cause("network switch or cable", 35, "network", "nic"),
  cause("host maintenance", 32, "planned", "host"),
  cause("GPU SRAM", 19, "host", "accelerator"),
  cause("GPU system processor", 17, "host", "accelerator"),
  cause("NIC", 7, "host", "nic"),
  cause("NCCL watchdog timeout", 7, "network", "job"),
  cause("silent data corruption", 6, "silent", "accelerator"),
  cause("GPU thermal interface", 6, "host", "accelerator"),
  cause("SSD", 3, "host", "host"),
  cause("power supply", 3, "host", "host"),
  cause("server chassis", 2, "host", "host"),
  cause("IO expansion board", 2, "host", "host"),
  cause("dependency", 2, "software", "job"),
  cause("CPU", 2, "host", "host"),
  cause("system memory", 2, "host", "host"),
];

/** ByteRobust (SOSP'25), table 1: 55,365 incidents of 778,135 jobs in three months. */
export const byteRobustCauses: readonly Cause[] = [
  cause("CUDA error", 19_968, "host", "accelerator"),
  cause("code or data change", 9_582, "planned", "job"),
  cause("CPU overload", 6_095, "host", "host"),
  cause("CPU out of memory", 5_567, "software", "job"),
  cause("hang", 5_506, "network", "job"),
  cause("disk space", 2_755, "host", "host"),
  cause("InfiniBand error", 1_599, "network", "nic"),
  cause("file system mount", 1_176, "host", "host"),
  cause("HDFS error", 1_104, "software", "job"),
  cause("container error", 781, "software", "job"),
  cause("MFU decline", 442, "host", "accelerator"),
  cause("kernel panic", 203, "host", "host"),
  cause("GPU memory", 188, "host", "accelerator"),
  cause("NaN", 148, "silent", "accelerator"),
  cause("external service", 128, "software", "job"),
  cause("GPU unavailable", 76, "host", "accelerator"),
  cause("disk fault", 47, "host", "host"),
];

/** FT-HSDP (Meta): 678 interruptions of training on 32k GPUs. */
export const ftHsdpCauses: readonly Cause[] = [
  cause("GPU HBM3", 155, "host", "accelerator"),
  cause("PCIe", 122, "host", "accelerator"),
  cause("NCCL watchdog timeout", 61, "network", "job"),
  cause("GPU compute", 50, "host", "accelerator"),
  cause("software", 48, "software", "job"),
  cause("host maintenance", 42, "planned", "host"),
  cause("kernel", 39, "host", "host"),
  cause("reboot", 38, "host", "host"),
  cause("silent data corruption", 37, "silent", "accelerator"),
  cause("network", 36, "network", "nic"),
  cause("SSD", 30, "host", "host"),
  cause("GPU SRAM", 8, "host", "accelerator"),
  cause("unknown", 7, "host", "host"),
  cause("system memory", 2, "host", "host"),
  cause("cooling", 2, "host", "host"),
  cause("thermal", 1, "host", "accelerator"),
];

/** RSC (HPCA'25): root causes of 40 lemon hosts, in percent, reported second-hand. */
export const lemonCauses: readonly Cause[] = [
  cause("GPU", 28.2, "host", "accelerator"),
  cause("DIMM", 20.5, "host", "host"),
  cause("PCIe", 15.4, "host", "accelerator"),
  cause("EUD", 10.3, "host", "accelerator"),
  cause("BIOS", 7.7, "host", "host"),
  cause("NIC", 7.7, "host", "nic"),
  cause("PSU", 5.1, "host", "host"),
  cause("optics", 2.6, "host", "nic"),
  cause("CPU", 2.6, "host", "host"),
];
