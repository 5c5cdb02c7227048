/** Trains with gradients that replicas exchange in BF16, and compares with one rank in float32. */
import { spans } from "@trireme/timeline";
import { microbatches } from "@trireme/workload";
import { expect } from "vitest";
import { gpt, reference, worstGradient } from "./equality.ts";
import {
  type Degrees,
  learningRate,
  smallBatch,
  smallRun,
  trainSteps,
  withRuntime,
} from "./small-run.ts";

/** Expects `steps` steps to stay within the rounding of BF16, and messages to be half as long. */
export async function expectReducedInBf16(plan: Degrees, steps: number): Promise<void> {
  const one = await reference(gpt, steps);
  const run = smallRun({ ...plan, reductionPrecision: "bf16" }, gpt);
  const { losses, gradients, bytes } = await withRuntime(run, async (runtime) => {
    const input = { step: 0, batch: smallBatch(0), learningRate };
    const { timeline, loss } = await runtime.step(input);
    const sent = [...spans(timeline)].filter(({ action }) => action === "0REDUCE_GRAD");
    return {
      bytes: sent.reduce((sum, span) => sum + (span.bytes ?? 0), 0),
      gradients: await runtime.gradients(),
      losses: [loss, ...(await trainSteps(runtime, 1, steps))],
    };
  });
  // All replicas get the sums of all, rounded again, or each the sums of its part in float32.
  const again = plan.zero === 0 || plan.gradientExchange === "all-reduce";
  const error = worstGradient(gradients, one.first);
  expect(error).toBeLessThan(again ? 2 ** -7 : 2 ** -8);
  expect(error).toBeGreaterThan(1e-4);
  // ZeRO 2 and 3 exchange the gradients of each microbatch, and add up the sums in float32.
  const exchanges = run.plan.zero < 2 ? 1 : microbatches(run.plan);
  expect([...gradients.values()].every(isBf16)).toBe(again && exchanges === 1);
  losses.forEach((loss, i) => expect(Math.abs(loss - one.losses[i]!)).toBeLessThan(0.01));

  // Two bytes for each number at every replica, and what blocks are rounded up by.
  const numbers = [...gradients.values()].reduce((sum, { length }) => sum + length, 0);
  const each = bytes / (run.plan.dp * numbers * exchanges);
  expect(each).toBeGreaterThanOrEqual(2);
  expect(each).toBeLessThan(2.05);
}

/** Whether a number is one of BF16: the lower half of its bits is 0. */
function isBf16(values: Float32Array): boolean {
  const words = new Uint32Array(values.buffer, values.byteOffset, values.length);
  return words.every((word) => (word & 0xffff) === 0);
}
