/** Google's TPUs, a row a chip. */
import type { Accelerator } from "../accelerator.ts";
import { acceleratorRow as row } from "./accelerator-row.ts";

export const google: readonly Accelerator[] = [
  row(
    "tpu-v3",
    "tpu-v3",
    { bf16: 123 },
    { memory: 32, bandwidth: 900, l2: 32, units: 2, scaleUp: 280, tdp: 262, idle: 123 },
    "Google Cloud TPU v3 documentation, power included (123 W least and 262 W most of what was measured); four ICI links of 70 GB/s: Jouppi et al., TPU v4 (ISCA 2023), table of v3 and v4; two cores with 16 MiB of vector memory each",
    "tpu",
  ),
  row(
    "tpu-v4",
    "tpu-v4",
    { bf16: 275 },
    { memory: 32, bandwidth: 1200, l2: 128, units: 2, scaleUp: 270, tdp: 192, idle: 90 },
    "Google Cloud TPU v4 documentation, power included (90 W least and 192 W most of what was measured); six ICI links of 45 GB/s: Austin et al., How to scale your model (2025), chapter 2, of which 4,096 chips make the 1.1 PB/s that Google states; shared memory (CMEM): Jouppi et al., TPU v4 (ISCA 2023)",
    "tpu",
  ),
  row(
    "tpu-v5e",
    "tpu-v5e",
    { bf16: 197, int8: 393 },
    { memory: 16, bandwidth: 819, l2: 128, units: 1, scaleUp: 200, tdp: 200, idle: 60 },
    "Google Cloud TPU v5e documentation (400 GB/s of ICI, both directions); shared memory (VMEM): Austin et al., How to scale your model (2025), chapter 2; power is not published: both figures are assumptions",
    "tpu",
  ),
  row(
    "tpu-v5p",
    "tpu-v5p",
    { bf16: 459, fp8: 459, int8: 918 },
    { memory: 95, bandwidth: 2765, l2: 128, units: 2, scaleUp: 600, tdp: 450, idle: 120 },
    "Google Cloud TPU v5p documentation (1200 GB/s of ICI, both directions); shared memory is an assumption: the v5e's; power is not published: both figures are assumptions",
    "tpu",
  ),
  row(
    "tpu-v6e",
    "tpu-v6e",
    { bf16: 918, fp8: 918, int8: 1836 },
    { memory: 32, bandwidth: 1638, l2: 128, units: 1, scaleUp: 400, tdp: 300, idle: 90 },
    "Google Cloud TPU v6e (Trillium) documentation (800 GB/s of ICI, both directions, over four links; 8-bit floats at the rate of bf16); shared memory is an assumption: the v5e's; power is not published: both figures are assumptions",
    "tpu",
  ),
  row(
    "tpu-v7",
    "tpu-v7",
    { bf16: 2307, fp8: 4614 },
    { memory: 192, bandwidth: 7380, l2: 128, units: 2, scaleUp: 600, tdp: 1000, idle: 200 },
    "Google Cloud TPU7x (Ironwood) documentation (1200 GB/s of ICI, both directions, over six links); a chip is two devices of JAX, of half these figures each; shared memory is an assumption: the v5p's; power is not published: both figures are assumptions",
    "tpu",
  ),
];
