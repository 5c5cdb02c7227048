/** Trains experts whose rows travel in fewer bits, and compares with one rank in float32. */
import { spans } from "@trireme/timeline";
import type { Plan } from "@trireme/workload";
import { expect } from "vitest";
import { mixtral, reference, train, worstGradient } from "./equality.ts";
import { learningRate, smallBatch, smallRun, withRuntime } from "./small-run.ts";

type Precision = NonNullable<Plan["dispatchPrecision"]>;

/**
 * Twice the unit roundoff, 2^-8 and 2^-4: a gradient passes four roundings of the rows of each layer,
 * most of whose errors cancel. Losses: what the errors of 50 steps add up to, choices of experts that
 * tip over among them.
 */
const bounds = {
  bf16: { gradient: 2 ** -7, loss: 0.02 },
  fp8: { gradient: 2 ** -3, loss: 0.02 },
} as const;

/** Bytes of rows: with 32 channels FP8 has a scale for 32 bytes forward, and 32 for a part backward. */
const shares = { bf16: 0.55, fp8: 0.35 } as const;

/** Expects `steps` steps to stay within the bounds of the precision, and its messages to be that small. */
export async function expectCompressed(
  dispatch: Plan["dispatch"],
  precision: "bf16" | "fp8",
  steps: number,
): Promise<void> {
  const one = await reference(mixtral, steps);
  const plan = (dispatchPrecision: Precision) =>
    smallRun({ dp: 2, ep: 2, microbatch: 4, dispatch, dispatchPrecision }, mixtral);
  const many = await train(plan(precision), steps);
  const { gradient, loss } = bounds[precision];
  const error = worstGradient(many.first, one.first);
  expect(error).toBeLessThan(gradient);
  // They are rounded.
  expect(error).toBeGreaterThan(1e-4);
  many.losses.forEach((l, step) => expect(Math.abs(l - one.losses[step]!)).toBeLessThan(loss));

  const [whole, less] = [await sentBytes(plan("fp32")), await sentBytes(plan(precision))];
  expect(less / whole).toBeLessThan(shares[precision]);
}

/** Bytes that the ranks of an expert group hand to their communicator in a step. */
function sentBytes(run: ReturnType<typeof smallRun>): Promise<number> {
  return withRuntime(run, async (runtime) => {
    const { timeline } = await runtime.step({ step: 0, batch: smallBatch(0), learningRate });
    let sum = 0;
    for (const { action, bytes } of spans(timeline)) {
      if (action?.startsWith("ep/")) sum += bytes ?? 0;
    }
    return sum;
  });
}
