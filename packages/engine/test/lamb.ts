/** Small runs that LAMB trains, and its update by a plain formula. */
import { decodeSafetensors } from "@trireme/checkpoint";
import { wholeModel } from "@trireme/engine";
import { expect } from "vitest";
import type { ResolvedRun } from "@trireme/run";
import type { Snapshot } from "@trireme/runtime";
import type { ModelOptions } from "@trireme/workload";
import { worstGradient } from "./equality.ts";
import { type Degrees, smallBatch, smallRun, takeSnapshot, withRuntime } from "./small-run.ts";

/** A step moves a matrix by this share of its norm. */
export const lambRate = 0.03;

/** The small run under LAMB. */
export function lambRun(plan: Degrees, form: Partial<ModelOptions> = {}): ResolvedRun {
  const run = smallRun(plan, form);
  return { ...run, optimizer: { ...run.optimizer, kind: "lamb" } };
}

/** Weights by name. */
export function weightsOf(snapshot: Snapshot): ReadonlyMap<string, Float32Array> {
  const { tensors } = decodeSafetensors(wholeModel(snapshot));
  return new Map(
    tensors.map(({ name, data }) => [name, new Float32Array(Uint8Array.from(data).buffer)]),
  );
}

interface Trained {
  readonly losses: readonly number[];
  readonly weights: ReadonlyMap<string, Float32Array>;
}

/** Losses of `steps` steps, and the weights they lead to. */
export function trainByLamb(run: ResolvedRun, steps: number): Promise<Trained> {
  return withRuntime(run, async (runtime) => {
    const losses: number[] = [];
    for (let step = 0; step < steps; step++) {
      const batch = smallBatch(step);
      losses.push((await runtime.step({ step, batch, learningRate: lambRate })).loss);
    }
    return { losses, weights: weightsOf(await takeSnapshot(runtime)) };
  });
}

const references = new Map<string, Promise<Trained>>();

/** Expects `steps` steps of a plan to be those of one rank. */
export async function expectSameLamb(
  plan: Degrees,
  form: Partial<ModelOptions>,
  steps: number,
): Promise<void> {
  const key = JSON.stringify([form, steps]);
  const known = references.get(key);
  const waited = known ?? trainByLamb(lambRun({}, form), steps);
  references.set(key, waited);
  const one = await waited;
  const many = await trainByLamb(lambRun(plan, form), steps);
  // The bounds of AdamW's losses; weights as far apart as rounding takes them in so many steps.
  many.losses.forEach((loss, step) =>
    expect(Math.abs(loss - one.losses[step]!)).toBeLessThan(1e-4),
  );
  expect(worstGradient(many.weights, one.weights)).toBeLessThan(1e-3);
}
