import { expect, test } from "vitest";
import { calibrates, coverage } from "../src/coverage.ts";
import type { Outcome } from "../src/outcome.ts";

const ids = Array.from({ length: 2000 }, (_, i) => `row-${i}`);

test("ids are split into halves", () => {
  const share = ids.filter(calibrates).length / ids.length;
  // A fair coin thrown 2,000 times stays within 5 % of a half but once in 10^5 times.
  expect(Math.abs(share - 0.5)).toBeLessThan(0.05);
});

/** Predictions of 1 that are to hold [0.9, 1.2]; of ten measurements eight are inside. */
const outcomes: Outcome[] = ids.map((id, i) => ({
  group: { id: "g", source: "s", kind: "iteration time" },
  id,
  measured: i % 10 === 0 ? 0.5 : i % 10 === 1 ? 1.3 : 1,
  predicted: 1,
  interval: { low: 0.9, high: 1.2 },
}));

test("coverage is of the rows that the intervals were not read off", () => {
  const [c] = coverage(outcomes);
  expect(c!.n).toBe(ids.filter((id) => !calibrates(id)).length);
  expect(c!.inside).toBeGreaterThan(0.75);
  expect(c!.inside).toBeLessThan(0.85);
  expect(c!.halfWidth).toBeCloseTo(0.15, 12);
  expect(c!.met).toBe(true);
});

test("intervals that hold everything are not honest, nor are vast ones", () => {
  const within = outcomes.map((o) => ({ ...o, measured: 1 }));
  expect(coverage(within)[0]!.met).toBe(false);
  const vast = outcomes.map((o) => ({ ...o, interval: { low: 0.6, high: 1.25 } }));
  expect(coverage(vast)[0]!.met).toBe(false);
});

test("rows without an interval are left out", () => {
  const bare: Outcome[] = ids.map((id) => ({
    group: { id: "g", source: "s", kind: "iteration time" },
    id,
    measured: 1,
    predicted: 1,
  }));
  expect(coverage(bare)).toEqual([]);
});
