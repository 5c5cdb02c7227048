/** Small runs that train adapters of every matrix. */
import { decodeSafetensors } from "@trireme/checkpoint";
import { wholeModel } from "@trireme/engine";
import { expect } from "vitest";
import type { ResolvedRun } from "@trireme/run";
import type { AdapterTarget, ModelOptions } from "@trireme/workload";
import { gpt, llama, worstGradient } from "./equality.ts";
import { type Degrees, smallRun, takeSnapshot, trainSteps, withRuntime } from "./small-run.ts";

/** What adapters may change in every model. */
export const attentionTargets = ["query", "key", "value", "output"] as const;

/** Forms of models, and all that adapters may change in them. */
export const adaptedForms: readonly (readonly [
  string,
  Partial<ModelOptions>,
  readonly AdapterTarget[],
])[] = [
  ["GPT-2", gpt, [...attentionTargets, "up", "down"]],
  ["Llama", llama, [...attentionTargets, "gate", "up", "down"]],
  ["Llama with products side by side", llama, ["qkv", "output", "gate-up", "down"]],
];

/** The small run of this form with adapters of rank 3. */
export function adapted(
  form: Partial<ModelOptions>,
  targets: readonly AdapterTarget[],
  plan: Degrees = {},
): ResolvedRun {
  return smallRun(plan, { ...form, adapter: { rank: 3, targets } });
}

/** Expects adapters to train under a plan as on one rank, to generate the same text, and nothing else to train. */
export async function expectAdapted(
  form: Partial<ModelOptions>,
  targets: readonly AdapterTarget[],
  plan: Degrees,
): Promise<void> {
  const train = (
    degrees: Degrees,
  ): Promise<[losses: number[], gradients: ReadonlyMap<string, Float32Array>, text: Int32Array]> =>
    withRuntime(adapted(form, targets, degrees), async (runtime) => {
      const losses = await trainSteps(runtime, 0, 2);
      const gradients = await runtime.gradients();
      losses.push(...(await trainSteps(runtime, 2, 6)));
      const prompt = Int32Array.of(1, 4, 7);
      const text = await runtime.generate!({ prompt, tokens: 6, temperature: 0, seed: 1 });
      return [losses, gradients, text];
    });
  const [losses, gradients, text] = await train(plan);
  const [one, expected, same] = await train({});
  // Rounding alone, over a step that has changed B from its zeros.
  expect(worstGradient(gradients, expected)).toBeLessThan(1e-4);
  losses.forEach((loss, step) => expect(Math.abs(loss - one[step]!)).toBeLessThan(1e-4));
  expect([...gradients.keys()].every((name) => name.includes(".lora_"))).toBe(true);
  expect(text).toEqual(same);
}

/**
 * Expects a run in BF16 to keep and to store frozen matrices so, to train as float32 does within its
 * rounding, and its snapshot to go on bit for bit, in another layout within rounding, and in float32.
 */
export async function expectFrozenInBf16(
  form: Partial<ModelOptions>,
  targets: readonly AdapterTarget[],
  plan: Degrees,
  elsewhere: Degrees,
): Promise<void> {
  const run = (degrees: Degrees): ResolvedRun =>
    adapted(form, targets, { precision: "bf16", ...degrees });
  const near = (losses: readonly number[], others: readonly number[]): void =>
    losses.forEach((loss, i) => expect(Math.abs(loss - others[i]!)).toBeLessThan(0.01));
  const { losses, snapshot } = await withRuntime(run(plan), async (runtime) => {
    const start = await trainSteps(runtime, 0, 2);
    const taken = await takeSnapshot(runtime);
    return { losses: [...start, ...(await trainSteps(runtime, 2, 4))], snapshot: taken };
  });
  const exact = adapted(form, targets);
  near(losses, await withRuntime(exact, (runtime) => trainSteps(runtime, 0, 4)));
  const goOn = (on: ResolvedRun): Promise<number[]> =>
    withRuntime(on, async (runtime) => {
      await runtime.restore(snapshot);
      return trainSteps(runtime, 2, 4);
    });
  const rest = losses.slice(2);
  expect(await goOn(run(plan))).toEqual(rest);
  near(await goOn(run(elsewhere)), rest);
  near(await goOn(exact), rest);
  const { tensors } = decodeSafetensors(wholeModel(snapshot));
  for (const { name, dtype, shape } of tensors) {
    const isHalf = shape.length === 2 && !name.includes(".lora_");
    expect([name, dtype]).toEqual([name, isHalf ? "BF16" : "F32"]);
  }
}
