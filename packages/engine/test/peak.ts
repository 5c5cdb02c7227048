/**
 * The peak of every rank's memory beside the estimate of the same plan: the memory that `estimate` of
 * `@trireme/cost-model` gives for a cluster of CPU cores, whose overhead is the engine's own. Asked for
 * directly: `estimate` has no speed of a CPU core in BF16.
 */
import { createRng } from "@trireme/core";
import { hostOverhead, memory } from "@trireme/cost-model";
import { embeddedRuntime } from "@trireme/engine";
import { defineRun } from "@trireme/run";
import { coordinate, defineMesh } from "@trireme/topology";
import {
  type ModelOptions,
  type PlanOptions,
  axes,
  defineModel,
  definePlan,
  ranks,
} from "@trireme/workload";
import { llama as smallLlama } from "./equality.ts";

/** Tens of megabytes a rank: so large that a kernel's working space does not count. */
const base = { layers: 8, hidden: 128, heads: 4, vocab: 512, context: 128 };
const sequence = 128;

/** Of each world rank: bytes used by two training steps, and estimated. */
export async function peaks(
  degrees: Partial<PlanOptions>,
  form: Partial<ModelOptions> = {},
): Promise<{ readonly used: number; readonly estimated: number }[]> {
  const model = defineModel({ ...base, ...form });
  const plan = definePlan(model, { globalBatch: 8, sequence, precision: "fp32", ...degrees });
  const run = defineRun({
    name: "peak",
    model: base,
    cluster: {
      cpu: { cores: 2, peak: "30 GFLOP/s", memory: "8 GiB", memoryBandwidth: "10 GB/s" },
      devices: ranks(plan),
    },
    plan: { globalBatch: plan.globalBatch, sequence, precision: "fp32" },
    seed: 7,
  });
  const predicted = memory({ model, plan, overhead: hostOverhead });
  const runtime = embeddedRuntime();
  try {
    await runtime.start({ ...run, model, plan });
    const rng = createRng(1);
    const [rows, width] = [plan.globalBatch, sequence + 1];
    for (let step = 0; step < 2; step++) {
      const tokens = Int32Array.from({ length: rows * width }, () => rng.integer(base.vocab));
      await runtime.step({ step, batch: { step, tokens, rows, width }, learningRate: 1e-3 });
    }
    const mesh = defineMesh(axes(plan));
    const pipeline = mesh.axes.findIndex(({ name }) => name === "pp");
    return (await runtime.memory()).map((used, rank) => ({
      used,
      estimated: predicted.ranks[coordinate(mesh, rank)[pipeline]!]!.total,
    }));
  } finally {
    await runtime.stop();
  }
}

/** Llama's form at this size, and a mixture of experts with a shared one. */
export const llama = { ...smallLlama, ffn: 352 } as const;
export const mixture = {
  ...llama,
  ffn: 192,
  experts: { count: 4, active: 2, ffn: 192, sharedFfn: 96 },
} as const;

/** How far the rank is off that errs most: used ÷ estimated − 1. */
export async function worstPeak(
  degrees: Partial<PlanOptions>,
  form?: Partial<ModelOptions>,
): Promise<number> {
  const errors = (await peaks(degrees, form)).map(({ used, estimated }) => used / estimated - 1);
  return errors.reduce((a, b) => (Math.abs(b) > Math.abs(a) ? b : a));
}
