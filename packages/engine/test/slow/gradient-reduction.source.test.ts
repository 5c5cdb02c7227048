import { expect, test } from "vitest";
import { expectEqual, gpt, train } from "../equality.ts";
import { expectReducedInBf16 } from "../reduced-gradients.ts";
import { smallRun } from "../small-run.ts";

test.each([
  { dp: 2, zero: 0 },
  { dp: 4, zero: 1, overlapDataParallel: true },
  { dp: 2, zero: 2, gradientExchange: "all-reduce" },
  { dp: 2, zero: 3 },
] as const)("gradients of %j travel in BF16 and are summed in float32", (plan) =>
  expectReducedInBf16(plan, 50),
);

test("replicas that all get all sums train as one rank does", () =>
  expectEqual({ dp: 2, zero: 2, gradientExchange: "all-reduce" }, gpt, 50));

test("gradients in BF16 are the same bits from run to run", async () => {
  const run = smallRun({ dp: 4, zero: 2, reductionPrecision: "bf16", overlapDataParallel: true });
  const [a, b] = [await train(run, 20), await train(run, 20)];
  expect(a.losses).toEqual(b.losses);
  expect(a.first).toEqual(b.first);
});
