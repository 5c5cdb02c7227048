/** Gradients that are kept in BF16: as rounded by hand, and under every axis within their rounding. */
import { expect, test } from "vitest";
import type { ModelOptions } from "@trireme/workload";
import { expectAccumulated } from "../bf16-gradients.ts";
import { deepSeek, gpt, llama, reference, switchForm, train, worstGradient } from "../equality.ts";
import { lambRun, trainByLamb } from "../lamb.ts";
import { type Degrees, smallRun } from "../small-run.ts";

test.each([
  { microbatch: 2 },
  { dp: 2, zero: 0 },
  { dp: 2, zero: 1 },
  { dp: 2, zero: 1, reductionPrecision: "fp32" },
  { dp: 2, zero: 2, gradientExchange: "all-reduce", microbatch: 4 },
  { dp: 4, zero: 3 },
] as const)("%j: gradients are those of sums rounded by hand", (plan) => expectAccumulated(plan));

const narrow = { gradientPrecision: "bf16" } as const;

const plans: readonly (readonly [Degrees, Partial<ModelOptions>])[] = [
  // Both uses of a tied table on one rank, at the ends of a pipeline, and on one rank of a folded one.
  [{}, gpt],
  [{ pp: 4, schedule: "zb-h1" }, gpt],
  [{ pp: 2, vpp: 2, schedule: "zb-v" }, gpt],
  [{ pp: 2, schedule: "dualpipe", dp: 2, zero: 1 }, gpt],
  [{ dp: 2, zero: 2, pp: 2, overlapDataParallel: true }, gpt],
  [{ tp: 2, sequenceParallel: true, dp: 2, zero: 3, recompute: "full" }, gpt],
  [{ tp: 4, reductionPrecision: "fp32" }, gpt],
  [{ cp: 2, dp: 2, zero: 1 }, llama],
  [{ dp: 2, ep: 2 }, switchForm],
  [{ dp: 4, ep: 2, zero: 3 }, deepSeek],
  [{ precision: "bf16", dp: 2, zero: 3, offload: "optimizer" }, llama],
];

test.each(plans)(
  "%j: gradients and losses are those of float32 within their rounding",
  async (plan, form) => {
    const one = await reference(form, 20);
    const many = await train(smallRun({ ...plan, ...narrow }, form), 20);
    // A gradient is a sum of at most 8 microbatches, each of which rounds what there is to 8 bits; in BF16
    // what it is a gradient of is rounded, too.
    expect(worstGradient(many.first, one.first)).toBeLessThan(
      plan.precision === "bf16" ? 2 ** -5 : 2 ** -6,
    );
    many.losses.forEach((loss, step) =>
      expect(Math.abs(loss - one.losses[step]!)).toBeLessThan(0.02),
    );
  },
);

test.each([
  { dp: 2, zero: 3, overlapDataParallel: true },
  { dp: 2, zero: 1, pp: 2 },
] as const)("%j: the same bits from run to run, and with states on the host", async (plan) => {
  const run = (more: Degrees): ReturnType<typeof train> =>
    train(smallRun({ ...plan, ...narrow, ...more }), 10);
  const one = await run({});
  for (const again of [await run({}), await run({ offload: "optimizer" })]) {
    expect(again.losses).toEqual(one.losses);
    expect(again.first).toEqual(one.first);
  }
});

test("LAMB trains by them as by float32's, within their rounding", async () => {
  const exact = await trainByLamb(lambRun({}), 10);
  const rounded = await trainByLamb(lambRun({ dp: 2, zero: 1, ...narrow }), 10);
  rounded.losses.forEach((loss, i) => expect(Math.abs(loss - exact.losses[i]!)).toBeLessThan(0.01));
});
