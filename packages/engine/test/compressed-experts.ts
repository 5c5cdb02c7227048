/** Trains experts whose rows travel in fewer bits, and compares with one rank in float32. */
import { type Timeline, spans } from "@trireme/timeline";
import type { Plan } from "@trireme/workload";
import { expect } from "vitest";
import { mixtral, reference, worstGradient } from "./equality.ts";
import {
  globalBatch,
  learningRate,
  sequence,
  smallBatch,
  smallRun,
  trainSteps,
  withRuntime,
} from "./small-run.ts";

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

/** The run whose rows travel so. */
export function compressedRun(
  dispatch: Plan["dispatch"],
  dispatchPrecision: Precision,
): ReturnType<typeof smallRun> {
  return smallRun({ dp: 2, ep: 2, microbatch: 4, dispatch, dispatchPrecision }, mixtral);
}

/**
 * Expects `steps` steps to stay within the bounds of the precision, and its messages to be that small.
 * Returns the losses.
 */
export async function expectCompressed(
  dispatch: Plan["dispatch"],
  precision: "bf16" | "fp8",
  steps: number,
): Promise<readonly number[]> {
  const one = await reference(mixtral, steps);
  const { losses, gradients, sent } = await withRuntime(
    compressedRun(dispatch, precision),
    async (runtime) => {
      const { timeline, loss } = await runtime.step({
        step: 0,
        batch: smallBatch(0),
        learningRate,
      });
      return {
        sent: sentBytes(timeline),
        gradients: await runtime.gradients(),
        losses: [loss, ...(await trainSteps(runtime, 1, steps))],
      };
    },
  );
  const bound = bounds[precision];
  const error = worstGradient(gradients, one.first);
  expect(error).toBeLessThan(bound.gradient);
  // They are rounded.
  expect(error).toBeGreaterThan(1e-4);
  losses.forEach((loss, i) => expect(Math.abs(loss - one.losses[i]!)).toBeLessThan(bound.loss));
  expect(sent / (await wholeBytes(dispatch))).toBeLessThan(shares[precision]);
  return losses;
}

/** Bytes that the ranks of an expert group hand to their communicator in a step. */
function sentBytes(timeline: Timeline): number {
  return [...spans(timeline)]
    .filter(({ action }) => action?.startsWith("ep/"))
    .reduce((sum, { bytes }) => sum + bytes, 0);
}

/** The same in float32. */
async function wholeBytes(dispatch: Plan["dispatch"]): Promise<number> {
  // Two rows of 32 numbers for each token: there and back, forward and backward, in four layers.
  if (dispatch === "all-to-all") return globalBatch * sequence * 2 * 32 * 4 * 4 * 4;
  return withRuntime(compressedRun(dispatch, "fp32"), async (runtime) => {
    const { timeline } = await runtime.step({ step: 0, batch: smallBatch(0), learningRate });
    return sentBytes(timeline);
  });
}
