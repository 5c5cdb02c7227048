/** A small run, its batches, and its training under any plan. */
import { createRng } from "@trireme/core";
import type { Batch } from "@trireme/dataloader";
import { type EmbeddedRuntime, embeddedRuntime } from "@trireme/engine";
import { type ResolvedRun, defineRun } from "@trireme/run";

export const sequence = 16;
export const globalBatch = 8;
export const vocab = 31;
export const learningRate = 3e-3;

export interface Degrees {
  readonly dp?: number;
  readonly pp?: number;
  readonly vpp?: number;
  readonly microbatch?: number;
  readonly schedule?: string;
  readonly stageLayers?: readonly number[];
}

/** Four layers of width 32 under this plan; `model` overrides fields of the architecture. */
export function smallRun(degrees: Degrees, model: object = {}): ResolvedRun {
  const { dp = 1, pp = 1 } = degrees;
  return defineRun({
    name: "small",
    model: { layers: 4, hidden: 32, heads: 4, vocab, context: sequence, ...model },
    cluster: {
      cpu: { cores: 2, peak: "30 GFLOP/s", memory: "8 GiB", memoryBandwidth: "10 GB/s" },
      devices: dp * pp,
    },
    plan: { globalBatch, microbatch: 1, sequence, precision: "fp32", ...degrees },
    optimizer: { learningRate, schedule: "constant" },
    steps: 20,
    seed: 7,
  });
}

/** The same tokens for every layout, with structure, so that there is something to learn. */
export function smallBatch(step: number): Batch {
  const rng = createRng(step);
  const tokens = new Int32Array(globalBatch * (sequence + 1));
  for (let i = 0; i < tokens.length; i++) tokens[i] = (i * 3 + rng.integer(4)) % vocab;
  return { step, tokens, rows: globalBatch, width: sequence + 1 };
}

/** Starts a runtime, lends it, and stops it whatever happens. */
export async function withRuntime<T>(
  run: ResolvedRun,
  use: (runtime: EmbeddedRuntime) => Promise<T>,
): Promise<T> {
  const runtime = embeddedRuntime();
  try {
    await runtime.start(run);
    return await use(runtime);
  } finally {
    await runtime.stop();
  }
}

/** Losses of steps `from`..`to - 1`. */
export async function trainSteps(
  runtime: EmbeddedRuntime,
  from: number,
  to: number,
): Promise<number[]> {
  const losses: number[] = [];
  for (let step = from; step < to; step++) {
    losses.push((await runtime.step({ step, batch: smallBatch(step), learningRate })).loss);
  }
  return losses;
}
