/** A small run, its batches, and its training under any plan. */
import { createRng } from "@trireme/core";
import type { Batch } from "@trireme/dataloader";
import {
  type EmbeddedRuntime,
  type EmbeddedRuntimeOptions,
  embeddedRuntime,
} from "@trireme/engine";
import { type ResolvedRun, defineRun } from "@trireme/run";
import type { Snapshot } from "@trireme/runtime";
import { type ModelOptions, type Plan, defineModel, definePlan } from "@trireme/workload";

export const sequence = 16;
export const globalBatch = 8;
export const vocab = 31;
export const learningRate = 3e-3;

/** What a test sets of a plan. */
export type Degrees = Partial<Omit<Plan, "globalBatch" | "sequence">>;

/** Four layers of width 32 under this plan; `form` overrides fields of the architecture. */
export function smallRun(degrees: Degrees, form: Partial<ModelOptions> = {}): ResolvedRun {
  const { dp = 1, pp = 1, tp = 1, cp = 1 } = degrees;
  const model = defineModel({
    layers: 4,
    hidden: 32,
    heads: 4,
    vocab,
    context: sequence,
    ...form,
  });
  const run = defineRun({
    name: "small",
    model: { layers: 4, hidden: 32, heads: 4, vocab, context: sequence },
    cluster: {
      cpu: { cores: 2, peak: "30 GFLOP/s", memory: "8 GiB", memoryBandwidth: "10 GB/s" },
      devices: dp * pp * tp * cp,
    },
    // Any that is legal; the plan proper comes below.
    plan: { globalBatch: globalBatch * dp * pp * tp * cp, sequence, precision: "fp32" },
    optimizer: { learningRate, schedule: "constant" },
    steps: 20,
    seed: 7,
  });
  const plan = definePlan(model, { globalBatch, sequence, precision: "fp32", ...degrees });
  return { ...run, model, plan };
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
  options: EmbeddedRuntimeOptions = {},
): Promise<T> {
  const runtime = embeddedRuntime(options);
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

/** A snapshot whose bytes are all there. */
export async function takeSnapshot(runtime: EmbeddedRuntime): Promise<Snapshot> {
  const { step, files, taken } = await runtime.snapshot();
  await taken;
  return { step, files };
}
