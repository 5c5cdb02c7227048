/** NVIDIA's accelerators; the conventions are those of `accelerators.ts`. */
import type { Accelerator } from "../accelerator.ts";
import { idle, acceleratorRow as row } from "./accelerator-row.ts";

const volta = { fp64: 7.8, fp32: 15.7, fp16: 125 };
const ampere = { fp64: 19.5, fp32: 19.5, tf32: 156, bf16: 312, fp16: 312, int8: 624 };
const hopper = {
  fp64: 67,
  fp32: 67,
  tf32: 494.7,
  bf16: 989.4,
  fp16: 989.4,
  fp8: 1978.9,
  int8: 1978.9,
};
const blackwell = { fp64: 37, fp32: 75, tf32: 1125, bf16: 2250, fp16: 2250, fp8: 4500, fp4: 9000 };
const v100Source =
  "NVIDIA V100 SXM2 datasheet (2020); L2 and SMs: Tesla V100 architecture whitepaper";
const a100Paper = "L2 and SMs: A100 architecture whitepaper";
const bridged = "scale-up through the optional bridge to one other card";
const sixStacks =
  "L2 is an assumption: 60 MiB, as the H200 reports with the same six memory stacks";

export const nvidia: readonly Accelerator[] = [
  row(
    "v100-16",
    "volta",
    volta,
    { memory: 16, bandwidth: 900, l2: 6, units: 80, scaleUp: 150, tdp: 300, idle: 26 },
    `${v100Source}; ${idle(5, 23, 45)}`,
  ),
  row(
    "v100-32",
    "volta",
    volta,
    { memory: 32, bandwidth: 900, l2: 6, units: 80, scaleUp: 150, tdp: 300, idle: 43 },
    `${v100Source}; ${idle(5, 39, 44)}`,
  ),
  row(
    "a100-40",
    "ampere",
    ampere,
    { memory: 40, bandwidth: 1555, l2: 40, units: 108, scaleUp: 300, tdp: 400, idle: 55 },
    `NVIDIA A100 SXM4 40 GB datasheet (2020); ${a100Paper}; ${idle(5, 47, 57)}`,
  ),
  row(
    "a100-80",
    "ampere",
    ampere,
    { memory: 80, bandwidth: 2039, l2: 40, units: 108, scaleUp: 300, tdp: 400, idle: 60 },
    `NVIDIA A100 SXM4 80 GB datasheet (2021); ${a100Paper}; ${idle(6, 54, 64)}`,
  ),
  row(
    "a100-pcie-40",
    "ampere",
    ampere,
    { memory: 40, bandwidth: 1555, l2: 40, units: 108, scaleUp: 300, tdp: 250, idle: 34 },
    `NVIDIA A100 40 GB PCIe product brief PB-10137-001 (2020), ${bridged}; ${a100Paper}; ${idle(4, 30, 36)}`,
  ),
  row(
    "a100-pcie-80",
    "ampere",
    ampere,
    { memory: 80, bandwidth: 1935, l2: 40, units: 108, scaleUp: 300, tdp: 300, idle: 45 },
    `NVIDIA A100 PCIe 80 GB datasheet (2021), ${bridged}; ${a100Paper}; ${idle(5, 40, 54)}`,
  ),
  row(
    "a800-80",
    "ampere",
    ampere,
    { memory: 80, bandwidth: 2039, l2: 40, units: 108, scaleUp: 200, tdp: 400, idle: 58 },
    `NVIDIA A800 SXM datasheet (2022): an A100-80 with 400 GB/s of NVLink, both directions; ${idle(4, 55, 62)}`,
  ),
  row(
    "h100",
    "hopper",
    hopper,
    { memory: 80, bandwidth: 3350, l2: 50, units: 132, scaleUp: 450, tdp: 700, idle: 71 },
    `NVIDIA H100 SXM5 datasheet (2023); L2, SMs and dense peaks: H100 architecture whitepaper; ${idle(7, 68, 75)}`,
  ),
  row(
    "h100-pcie",
    "hopper",
    { fp64: 51.2, fp32: 51.2, tf32: 378, bf16: 756, fp16: 756, fp8: 1513, int8: 1513 },
    { memory: 80, bandwidth: 2000, l2: 50, units: 114, scaleUp: 300, tdp: 350, idle: 48 },
    `NVIDIA H100 PCIe product brief PB-11133-001 and datasheet (2022), ${bridged}; L2 and SMs: H100 architecture whitepaper; ${idle(2, 46, 49)}`,
  ),
  row(
    "h100-nvl",
    "hopper",
    { fp64: 60, fp32: 60, tf32: 417.5, bf16: 835.5, fp16: 835.5, fp8: 1670.5, int8: 1670.5 },
    { memory: 94, bandwidth: 3900, l2: 60, units: 132, scaleUp: 300, tdp: 400, idle: 62 },
    `NVIDIA H100 NVL datasheet (2024), figures of one card, sparse peaks halved; scale-up through the bridge to its partner; ${sixStacks}; ${idle(3, 61, 64)}`,
  ),
  row(
    "h800",
    "hopper",
    { ...hopper, fp64: 1 },
    { memory: 80, bandwidth: 3350, l2: 50, units: 132, scaleUp: 200, tdp: 700, idle: 71 },
    `NVIDIA H800 SXM5 datasheet (2023): an H100 with 400 GB/s of NVLink, both directions, and 1 TFLOP/s of fp64; peak, memory and NVLink also in MegaScale-MoE (arXiv 2505.11432, Table 4); idle power is an assumption: the H100's`,
  ),
  row(
    "h20",
    "hopper",
    { fp64: 1, fp32: 44, tf32: 74, bf16: 148, fp16: 148, fp8: 296, int8: 296 },
    { memory: 96, bandwidth: 4000, l2: 60, units: 78, scaleUp: 450, tdp: 500, idle: 72 },
    `NVIDIA H20 figures as resellers publish them (2023); peak and bandwidth also in MegaScale-MoE (arXiv 2505.11432, Table 4); SMs and the limit of 500 W as devices report (resellers' tables say 400 W); ${sixStacks}; ${idle(2, 72, 72)}`,
  ),
  row(
    "h200",
    "hopper",
    hopper,
    { memory: 141, bandwidth: 4800, l2: 60, units: 132, scaleUp: 450, tdp: 700, idle: 75 },
    `NVIDIA H200 SXM datasheet (2024); L2 and SMs as devices report (60 MiB, 132); ${idle(6, 73, 120)}`,
  ),
  row(
    "h200-nvl",
    "hopper",
    { fp64: 60, fp32: 60, tf32: 417.5, bf16: 835.5, fp16: 835.5, fp8: 1670.5, int8: 1670.5 },
    { memory: 141, bandwidth: 4800, l2: 60, units: 132, scaleUp: 450, tdp: 600, idle: 75 },
    `NVIDIA H200 NVL datasheet (2024), figures of one card, sparse peaks halved; scale-up through the optional bridge to one other card or three; ${sixStacks}; SMs as of the H200; idle power is an assumption: the H200's`,
  ),
  row(
    "gh200",
    "hopper",
    hopper,
    { memory: 96, bandwidth: 4000, l2: 60, units: 132, scaleUp: 450, tdp: 900, idle: 85 },
    `NVIDIA GH200 Grace Hopper datasheet (2023), 96 GB HBM3; ${sixStacks}; SMs as devices report; power is of the GPU alone: 900 W is the largest limit that devices report (700 W on others; the module's is 450 to 1000 W, programmable); ${idle(5, 73, 87)}`,
  ),
  row(
    "b200",
    "blackwell",
    { ...blackwell, int8: 4500 },
    { memory: 180, bandwidth: 7700, l2: 126, units: 148, scaleUp: 900, tdp: 1000, idle: 141 },
    `NVIDIA HGX B200 figures (2025), an eighth of the board, sparse peaks halved; bandwidth: Blackwell architecture technical brief, and the 7680-bit bus that devices report (DGX pages round to 8 TB/s); L2: Blackwell tuning guide; SMs as devices report; ${idle(4, 136, 145)}`,
  ),
  row(
    "gb200",
    "blackwell",
    { fp64: 40, fp32: 80, tf32: 1250, bf16: 2500, fp16: 2500, fp8: 5000, int8: 5000, fp4: 10_000 },
    { memory: 186, bandwidth: 8000, l2: 126, units: 152, scaleUp: 900, tdp: 1200, idle: 164 },
    `NVIDIA GB200 NVL72 figures (2024), one of 72, sparse peaks halved; L2: Blackwell tuning guide; SMs and 1200 W as devices report; ${idle(4, 156, 181)}`,
  ),
  row(
    "b300",
    "blackwell-ultra",
    { ...blackwell, fp64: 1.25, fp4: 13_500 },
    { memory: 270, bandwidth: 8000, l2: 126, units: 148, scaleUp: 900, tdp: 1100, idle: 181 },
    `NVIDIA HGX B300 figures (2025), an eighth of the board, sparse peaks halved, fp4 dense as printed (108 PFLOP/s a board); SMs and 1100 W as devices report; L2 is an assumption: the B200's; ${idle(5, 135, 238)}`,
  ),
  row(
    "gb300",
    "blackwell-ultra",
    { fp64: 1.39, fp32: 80, tf32: 1250, bf16: 2500, fp16: 2500, fp8: 5000, fp4: 15_000 },
    { memory: 279, bandwidth: 8000, l2: 126, units: 152, scaleUp: 900, tdp: 1400, idle: 234 },
    `NVIDIA GB300 NVL72 figures (2025), one of 72, sparse peaks halved, fp4 dense as printed (1080 PFLOP/s a rack); 1400 W as devices report; SMs and L2 are assumptions: the GB200's; ${idle(3, 172, 237)}`,
  ),
  row(
    "l40s",
    "ada",
    { fp32: 91.6, tf32: 183, bf16: 362.05, fp16: 362.05, fp8: 733, int8: 733 },
    { memory: 48, bandwidth: 864, l2: 96, units: 142, scaleUp: 0, tdp: 350, idle: 31 },
    `NVIDIA L40S datasheet (2023), which prints 362.05 TFLOP/s dense and 733 sparse for 16 bits; L2 and SMs: Ada architecture whitepaper; ${idle(5, 22, 34)}`,
  ),
  row(
    "l20",
    "ada",
    { fp32: 59.8, tf32: 59.8, bf16: 119.5, fp16: 119.5, fp8: 239, int8: 239 },
    { memory: 48, bandwidth: 864, l2: 96, units: 92, scaleUp: 0, tdp: 350, idle: 29 },
    `NVIDIA L20 figures as resellers publish them (2023); 350 W is the limit that devices report (resellers' tables say 275 W); ${idle(2, 25, 33)}`,
  ),
  row(
    "rtx3080ti",
    "ampere",
    { fp32: 34.1, tf32: 34.1, bf16: 68.2, fp16: 68.2 },
    { memory: 12, bandwidth: 912, l2: 6, units: 80, scaleUp: 0, tdp: 350, idle: 14 },
    `NVIDIA GeForce RTX 3080 Ti specification (2021); tensor peaks with fp32 accumulation: twice fp32, as in the GA102 architecture whitepaper; ${idle(4, 9, 20)}`,
  ),
  row(
    "rtx3090",
    "ampere",
    { fp32: 35.6, tf32: 35.6, bf16: 71, fp16: 71 },
    { memory: 24, bandwidth: 936, l2: 6, units: 82, scaleUp: 56.25, tdp: 350, idle: 24 },
    `NVIDIA Ampere GA102 architecture whitepaper (2020), fp32 accumulation, ${bridged}; ${idle(2, 19, 29)}`,
  ),
  row(
    "rtx4090",
    "ada",
    { fp32: 82.6, tf32: 82.6, bf16: 165.2, fp16: 165.2, fp8: 330.3 },
    { memory: 24, bandwidth: 1008, l2: 72, units: 128, scaleUp: 0, tdp: 450, idle: 22 },
    `NVIDIA Ada architecture whitepaper (2022), fp32 accumulation; ${idle(7, 12, 27)}`,
  ),
  row(
    "a6000",
    "ampere",
    { fp32: 38.7, tf32: 77.4, bf16: 154.8, fp16: 154.8 },
    { memory: 48, bandwidth: 768, l2: 6, units: 84, scaleUp: 56.25, tdp: 300, idle: 21 },
    `NVIDIA RTX A6000 datasheet (2020) and GA102 architecture whitepaper, ${bridged}; ${idle(3, 17, 24)}`,
  ),
];
