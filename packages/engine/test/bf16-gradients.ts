/**
 * Gradients that are kept in BF16, beside those of float32 runs that are added up and rounded here, one
 * microbatch at a time.
 */
import { definePlan, microbatches } from "@trireme/workload";
import { expect } from "vitest";
import { llama } from "./equality.ts";
import {
  type Degrees,
  globalBatch,
  learningRate,
  sequence,
  smallBatch,
  smallRun,
  withRuntime,
} from "./small-run.ts";

/** Rounded to BF16, to nearest, ties to even. */
function bf16(value: number): number {
  const words = new Uint32Array(Float32Array.of(value).buffer);
  const [word = 0] = words;
  words[0] = word + 0x7fff + ((word >>> 16) & 1);
  words[0] &= 0xffff_0000;
  return new Float32Array(words.buffer)[0]!;
}

type Whole = ReadonlyMap<string, Float32Array>;

/** Gradients of the first step by runs of this many samples each, in float32, as parts of the global batch's mean. */
async function microbatchGradients(samples: number): Promise<Whole[]> {
  const run = smallRun({ microbatch: samples }, llama);
  const own = { globalBatch: samples, microbatch: samples, sequence, precision: "fp32" } as const;
  const plan = definePlan(run.model, own);
  const { tokens, width } = smallBatch(0);
  const parts: Whole[] = [];
  await withRuntime({ ...run, plan }, async (runtime) => {
    for (let row = 0; row < globalBatch; row += samples) {
      const part = tokens.slice(row * width, (row + samples) * width);
      const batch = { step: 0, tokens: part, rows: samples, width };
      // Weights stay as they are.
      await runtime.step({ step: 0, batch, learningRate: 0 });
      const gradients = await runtime.gradients();
      const share = samples / globalBatch;
      parts.push(new Map([...gradients].map(([name, g]) => [name, g.map((x) => x * share)])));
    }
  });
  return parts;
}

/**
 * What gradients kept in BF16 come to: each microbatch is added in float32 and rounded; replicas send
 * BF16, sum in float32 and round once more. With ZeRO 2 and 3 replicas sum each microbatch's.
 */
function accumulated(parts: readonly Whole[], { dp = 1, zero = 0 }: Degrees): Whole {
  const each = parts.length / dp;
  const add = (sum: number, term: number): number => bf16(Math.fround(sum + term));
  const total = (terms: readonly number[]): number =>
    terms.reduce((sum, term) => Math.fround(sum + term));
  return new Map(
    [...parts[0]!].map(([name, values]) => [
      name,
      values.map((_, i) => {
        const of = (replica: number, m: number): number =>
          parts[replica * each + m]!.get(name)![i]!;
        const replicas = Array.from({ length: dp }, (_replica, r) => r);
        const steps = Array.from({ length: each }, (_step, m) => m);
        if (zero >= 2) {
          return steps.reduce((sum, m) => add(sum, total(replicas.map((r) => bf16(of(r, m))))), 0);
        }
        return bf16(total(replicas.map((r) => steps.reduce((sum, m) => add(sum, of(r, m)), 0))));
      }),
    ]),
  );
}

/** Expects a plan with gradients in BF16 to have those of the emulation. */
export async function expectAccumulated(plan: Degrees): Promise<void> {
  const run = smallRun({ ...plan, gradientPrecision: "bf16" }, llama);
  const actual = await withRuntime(run, async (runtime) => {
    await runtime.step({ step: 0, batch: smallBatch(0), learningRate });
    return runtime.gradients();
  });
  const parts = await microbatchGradients(run.plan.microbatch);
  expect(microbatches(run.plan) * run.plan.dp).toBe(parts.length);
  const wanted = accumulated(parts, run.plan);
  for (const [name, values] of wanted) {
    // The same bits: sums of a microbatch are added to what is there when they are whole.
    const different = values.filter((value, i) => value !== actual.get(name)![i]);
    expect([name, different.length]).toEqual([name, 0]);
  }
}
