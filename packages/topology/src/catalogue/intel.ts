/** Intel's accelerators. */
import type { Accelerator } from "../accelerator.ts";
import { acceleratorRow as row, idleNote } from "./accelerator-row.ts";

export const intel: readonly Accelerator[] = [
  row(
    "max1550",
    "xe-hpc",
    { fp64: 26.2, fp32: 26.2, tf32: 209.7, bf16: 419.4, fp16: 419.4 },
    { memory: 64, bandwidth: 1638.4, l2: 204, units: 64, scaleUp: 212, tdp: 300, idle: 70 },
    "Intel Data Center GPU Max 1550 specification and Max Series technical overview (2023), one of its two tiles: 64 Xe cores at 1.6 GHz, 4096 bf16 operations a clock each; eight Xe Links of 26.5 GB/s a tile; power is half the package's; idle power is an assumption",
  ),
  row(
    "gaudi2",
    "gaudi2",
    { bf16: 432, fp16: 432, fp8: 865 },
    { memory: 96, bandwidth: 2460, l2: 48, units: 2, scaleUp: 262.5, tdp: 600, idle: 100 },
    `Intel Gaudi 3 AI accelerator white paper (2024), its column of Gaudi 2: two matrix engines, 48 MB of SRAM; 21 of its 24 ports of 100 Gbit/s go to the other seven of a host (Gaudi documentation, HLS-2); ${idleNote}`,
    "hpu",
  ),
  row(
    "gaudi3",
    "gaudi3",
    { bf16: 1678, fp16: 459, fp8: 1678 },
    { memory: 128, bandwidth: 3700, l2: 96, units: 8, scaleUp: 525, tdp: 900, idle: 226 },
    `Intel Gaudi 3 AI accelerator white paper (2024), HL-325L: eight matrix engines (1678 TFLOP/s, the same in 8 bits; 1835 at launch), 96 MB of SRAM; 21 of its 24 ports of 200 Gbit/s go to the other seven of a host; ${idleNote}: 226 W, as one sample of hl-smi shows`,
    "hpu",
  ),
];
