/** Trains with some ranks alone, and compares with what they did among all. */
import { expect } from "vitest";
import { type EmbeddedRuntimeOptions, type Trace, embeddedRuntime } from "@trireme/engine";
import { type Degrees, smallBatch, smallRun, trainSteps } from "./small-run.ts";

export const steps = 2;
type Form = Parameters<typeof smallRun>[1];

interface Told {
  readonly losses: readonly number[];
  readonly evaluated: number;
  readonly gradients: ReadonlyMap<string, Float32Array>;
  readonly trace: Trace | undefined;
}

/** Trains some steps and evaluates, under these options. */
export async function trainTold(
  plan: Degrees,
  form: Form,
  options: EmbeddedRuntimeOptions,
  seed = 7,
): Promise<Told> {
  const runtime = embeddedRuntime({ deadline: 20, ...options });
  try {
    await runtime.start({ ...smallRun(plan, form), seed });
    const losses = await trainSteps(runtime, 0, steps);
    const gradients = await runtime.gradients();
    const evaluated = (await runtime.evaluate(smallBatch(steps))).loss;
    const trace = options.record === undefined ? undefined : await runtime.trace();
    return { losses, evaluated, gradients, trace };
  } finally {
    await runtime.stop();
  }
}

/** Elements of gradients that are known, all of which must be those of the full run, bit for bit. */
export function expectKnownAlike(some: Told["gradients"], all: Told["gradients"]): number {
  let known = 0;
  for (const [name, values] of some) {
    const whole = all.get(name)!;
    const parts = values.map((v, i) => (Number.isNaN(v) ? whole[i]! : v));
    expect(parts).toEqual(whole);
    known += values.filter((v) => !Number.isNaN(v)).length;
  }
  return known;
}

/** Expects each set of ranks, run alone beside a recorded run, to do what it did there. */
export async function expectAlike(
  plan: Degrees,
  form: Form,
  sets: readonly (readonly number[])[],
): Promise<void> {
  const full = await trainTold(plan, form, { record: {} });
  for (const ranks of sets) {
    const some = await trainTold(plan, form, { emulate: { ranks, trace: full.trace! } });
    expect(some.losses).toEqual(full.losses);
    expect(some.evaluated).toBe(full.evaluated);
    expect(expectKnownAlike(some.gradients, full.gradients)).toBeGreaterThan(0);
  }
}
