/** AMD's accelerators. */
import type { Accelerator } from "../accelerator.ts";
import { idle, idleNote, acceleratorRow as row } from "./accelerator-row.ts";

const cdna3 = {
  fp64: 163.4,
  fp32: 163.4,
  tf32: 653.7,
  bf16: 1307.4,
  fp16: 1307.4,
  fp8: 2614.9,
  int8: 2614.9,
};

export const amd: readonly Accelerator[] = [
  row(
    "mi210",
    "cdna2",
    { fp64: 45.3, fp32: 45.3, bf16: 181, fp16: 181 },
    { memory: 64, bandwidth: 1638.4, l2: 8, units: 104, scaleUp: 150, tdp: 300, idle: 40 },
    `AMD Instinct MI210 datasheet (2022), matrix peaks, three Infinity Fabric links of 50 GB/s; L2: CDNA 2 whitepaper; ${idleNote}`,
  ),
  row(
    "mi250x",
    "cdna2",
    { fp64: 47.9, fp32: 47.9, bf16: 191.5, fp16: 191.5 },
    { memory: 64, bandwidth: 1638.4, l2: 8, units: 110, scaleUp: 400, tdp: 280, idle: 45.5 },
    `AMD Instinct MI250X datasheet (2021), one of its two dies (GCD), matrix peaks; eight Infinity Fabric links of 50 GB/s, four of them to the other die; L2: CDNA 2 whitepaper; power is half the package's: its cap as rocm-smi shows it is the 560 W that AMD calls peak board power (TDP 500 W); ${idle(11, 85, 102, "rocm-smi")} a package`,
  ),
  row(
    "mi300x",
    "cdna3",
    cdna3,
    { memory: 192, bandwidth: 5300, l2: 256, units: 304, scaleUp: 448, tdp: 750, idle: 145 },
    `AMD Instinct MI300X datasheet (2023), matrix peaks; seven Infinity Fabric links of 64 GB/s; the shared cache is the Infinity Cache (ROCm GPU specifications); ${idle(8, 138, 177, "rocm-smi")}`,
  ),
  row(
    "mi325x",
    "cdna3",
    cdna3,
    { memory: 256, bandwidth: 6000, l2: 256, units: 304, scaleUp: 448, tdp: 1000, idle: 141 },
    `AMD Instinct MI325X datasheet (2024), matrix peaks; seven Infinity Fabric links of 64 GB/s; the shared cache is the Infinity Cache (ROCm GPU specifications); ${idle(8, 137, 148, "amd-smi")}, of each board the least of a log`,
  ),
  row(
    "mi350x",
    "cdna4",
    { fp64: 72.1, fp32: 144.2, bf16: 2306.9, fp16: 2306.9, fp8: 4613.7, int8: 4613.7, fp4: 9227.5 },
    { memory: 288, bandwidth: 8000, l2: 256, units: 256, scaleUp: 537.6, tdp: 1000, idle: 238 },
    `AMD Instinct MI350X datasheet (2025), matrix peaks: 256 compute units at 2.2 GHz, 4096 bf16 operations a clock each; seven Infinity Fabric links of 76.8 GB/s; the shared cache is the Infinity Cache (ROCm GPU specifications); ${idleNote}: the MI355X's`,
  ),
  row(
    "mi355x",
    "cdna4",
    {
      fp64: 78.6,
      fp32: 157.3,
      bf16: 2516.6,
      fp16: 2516.6,
      fp8: 5033.2,
      int8: 5033.2,
      fp4: 10_066.3,
    },
    { memory: 288, bandwidth: 8000, l2: 256, units: 256, scaleUp: 537.6, tdp: 1400, idle: 238 },
    `AMD Instinct MI355X datasheet (2025), matrix peaks: 256 compute units at 2.4 GHz; seven Infinity Fabric links of 76.8 GB/s; the shared cache is the Infinity Cache (ROCm GPU specifications); ${idleNote}: 238 W, what one report says (ROCm issue 5219, which AMD calls expected)`,
  ),
];
