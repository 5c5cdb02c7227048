import { expect, test } from "vitest";
import {
  combineRows,
  combineRowsGradient,
  dispatchRows,
  planDispatch,
} from "@trireme/moe-dispatch";
import { Arena, expectClose } from "./arena.ts";

const [tokens, topK, experts] = [9, 2, 4];

/** Each token at two different experts, but for some slots without one. */
function choices(): Int32Array {
  return Int32Array.from({ length: tokens * topK }, (_, slot) =>
    slot % 7 === 3 ? -1 : (slot * 3 + (slot % 2)) % experts,
  );
}

// Sums of two products in another precision.
const tolerance = 1e-6;

test.each([1, 4, 5, 16])("rows %i wide travel as moe-dispatch says", (width) => {
  const arena = new Arena({ seed: width });
  const { kernels } = arena;
  const plan = planDispatch({ expertIds: choices(), topK, experts, ranks: 1 });
  const rows = plan.expertSlots.length;
  const [x, dy] = [arena.normal(tokens * width), arena.normal(tokens * width)];
  const weights = arena.normal(tokens * topK);
  const [slots, places] = [plan.expertSlots, plan.expertRows].map(
    (ids) => arena.integers([...ids]).pointer,
  ) as [number, number];

  const spread = arena.unset(rows * width);
  kernels.spreadRows(x.pointer, slots, 0, spread.pointer, rows, topK, width);
  expect([...spread.values]).toEqual([...dispatchRows(plan, Float32Array.from(x.values), width)]);

  const y = arena.unset(tokens * width);
  const sizes = [tokens, topK, width] as const;
  kernels.combineRows(spread.pointer, places, weights.pointer, y.pointer, ...sizes);
  const of = Float64Array.from(spread.values);
  const factors = Float64Array.from(weights.values);
  expectClose(y.values, combineRows(plan, of, width, factors), tolerance);

  const [dspread, dweights] = [arena.unset(rows * width), arena.unset(tokens * topK)];
  kernels.spreadRows(dy.pointer, slots, weights.pointer, dspread.pointer, rows, topK, width);
  kernels.combineWeightsGradient(dy.pointer, spread.pointer, places, dweights.pointer, ...sizes);
  const wanted = combineRowsGradient(plan, Float64Array.from(dy.values), of, width, factors);
  expectClose(dspread.values, wanted.rows, tolerance);
  expectClose(dweights.values, wanted.weights, tolerance);
  arena.checkGuards();
});
