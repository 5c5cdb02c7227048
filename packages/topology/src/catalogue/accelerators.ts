/**
 * The accelerators we know, one row each; adding one is adding a row.
 *
 * Conventions: peaks are dense (vendors' sparse figures halved) and of the fastest unit that takes
 * the format with fp32 accumulation; memory as vendors print it, read as GiB (devices report up to
 * 1 % less, cards of GDDR6 with ECC 6 %); scale-up bandwidth is all ports together in one direction
 * (vendors print both). Vendors do not publish idle power: it is the median of what monitoring tools
 * show in public logs for boards without a process, each board once, with their number and range in
 * `source`, or else an assumption that `source` names as one. The same goes for any other figure
 * without a document.
 */
import type { Accelerator } from "../accelerator.ts";
import { acceleratorRow as row } from "./accelerator-row.ts";
import { amd } from "./amd.ts";
import { google } from "./google.ts";
import { intel } from "./intel.ts";
import { nvidia } from "./nvidia.ts";

export const accelerators: readonly Accelerator[] = [
  ...nvidia,
  ...amd,
  ...intel,
  ...google,
  row(
    "cpu-core",
    "x86",
    { fp64: 0.048, fp32: 0.096 },
    { memory: 4, bandwidth: 10, l2: 2, units: 1, scaleUp: 0, tdp: 10, idle: 2 },
    "A generic server core by arithmetic: 3 GHz, two 256-bit multiply-add units (32 fp32 FLOP a cycle); memory, bandwidth and power are shares of a 32-core part; see cpuHost for a machine that was measured",
    "cpu",
  ),
];
