import { expect, test } from "vitest";
import { compressedRun, expectCompressed } from "./compressed-experts.ts";
import { expectEqual, mixtral, switchForm, train } from "./equality.ts";

// A slice of the grid in test/slow/expert-grid.source.test.ts.
test("experts that are shared out over two ranks train as on one", () =>
  expectEqual({ dp: 2, etp: 2, zero: 1 }, switchForm, 10));

test("ranks drop what one rank drops of the same parts of a microbatch, under a z-loss", () =>
  expectEqual({ cp: 2, ep: 2, expertCapacity: 1, dispatch: "unique" }, mixtral, 10, {
    capacityParts: { cp: 2, tp: 2 },
    zLoss: 0.01,
  }));

test("rows in FP8 stay within their bound, in a third of the bytes, the same bits each time", async () => {
  const losses = await expectCompressed("all-to-all", "fp8", 8);
  const again = await train(compressedRun("all-to-all", "fp8"), 3);
  expect(again.losses).toEqual(losses.slice(0, 3));
});
