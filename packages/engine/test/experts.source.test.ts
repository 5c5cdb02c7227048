import { expect, test } from "vitest";
import { expectCompressed } from "./compressed-experts.ts";
import { expectEqual, mixtral, switchForm, train } from "./equality.ts";
import { smallRun } from "./small-run.ts";

// A slice of the grid in test/slow/expert-grid.source.test.ts.
test.each([
  ["each expert on two ranks", { dp: 2, etp: 2, zero: 1 }, switchForm],
  ["a token once to each rank", { dp: 2, ep: 2, dispatch: "unique" }, mixtral],
] as const)("%s trains as one rank does", (_, plan, form) => expectEqual(plan, form, 12));

test("ranks drop what one rank drops of the same parts of a microbatch, under a z-loss", () =>
  expectEqual({ cp: 2, ep: 2, expertCapacity: 1 }, mixtral, 12, {
    capacityParts: { cp: 2, tp: 2 },
    zLoss: 0.01,
  }));

test("rows in FP8 stay within their bound, in a third of the bytes", () =>
  expectCompressed("all-to-all", "fp8", 6));

test("rows in FP8 give the same bits from run to run", async () => {
  const run = smallRun({ dp: 2, ep: 2, dispatchPrecision: "fp8" }, mixtral);
  const [a, b] = [await train(run, 2), await train(run, 2)];
  expect(a.losses).toEqual(b.losses);
  expect(a.first).toEqual(b.first);
});
