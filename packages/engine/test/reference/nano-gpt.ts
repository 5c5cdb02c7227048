/**
 * nanoGPT's setting for a CPU (karpathy/nanoGPT, README, "I only have a macbook"): 4 layers, 4 heads,
 * 128 wide, 64 tokens, batches of 12, 2,000 steps, learning rate 1e-3 to 1e-4 with 100 steps of
 * warm-up, beta2 0.99; on a megabyte of characters, nine tenths of it for training.
 */
import { createRng } from "@trireme/core";
import type { Batch } from "@trireme/dataloader";
import { type KernelChoice, type ResolvedRun, defineRun } from "@trireme/run";
import { learningRate } from "@trireme/runtime";
import { characterText } from "./text.ts";

export const samples = 12;
export const sequence = 64;
const steps = 2000;

const text = characterText(2 ** 20);
const trained = Math.floor(text.tokens.length * 0.9);

/** The run on `dp` ranks, by these kernels. */
export function nanoGpt({
  dp = 1,
  kernels = "wasm",
}: { readonly dp?: number; readonly kernels?: KernelChoice } = {}): ResolvedRun {
  return defineRun({
    name: "nanoGPT on a CPU",
    model: { layers: 4, hidden: 128, heads: 4, vocab: text.vocab, context: sequence },
    cluster: {
      cpu: { cores: 2, peak: "30 GFLOP/s", memory: "8 GiB", memoryBandwidth: "10 GB/s" },
      devices: dp,
    },
    plan: { dp, globalBatch: samples, microbatch: samples / dp, precision: "fp32" },
    optimizer: {
      learningRate: 1e-3,
      minimumLearningRate: 1e-4,
      schedule: "cosine",
      warmup: 100,
      beta2: 0.99,
      weightDecay: 0.1,
      clip: 1,
    },
    steps,
    engine: { kernels },
    seed: 1337,
  });
}

/** The learning rate of a step. */
export function rateOf(run: ResolvedRun, step: number): number {
  return learningRate({ ...run.optimizer, steps: run.steps }, step);
}

/** Windows of the text at random places: of its first nine tenths, or of the rest. */
export function nanoGptBatch(step: number, part: "train" | "validation" = "train"): Batch {
  const rng = createRng(part === "train" ? step : 1e6 + step);
  const [from, end] = part === "train" ? [0, trained] : [trained, text.tokens.length];
  const width = sequence + 1;
  const tokens = new Int32Array(samples * width);
  for (let row = 0; row < samples; row++) {
    const start = from + rng.integer(end - from - width + 1);
    tokens.set(text.tokens.subarray(start, start + width), row * width);
  }
  return { step, tokens, rows: samples, width };
}
