import { defineCluster } from "@trireme/topology";
import { defineModel, definePlan } from "@trireme/workload";
import { expect, test } from "vitest";
import type { Group, Outcome } from "../src/outcome.ts";
import { quantile, score, spearman } from "../src/score.ts";

const group: Group = {
  id: "g",
  source: "s",
  kind: "iteration time",
  target: { medianError: 0.11 },
};
const row = (id: string, measured: number, predicted: number): Outcome => ({
  group,
  id,
  measured,
  predicted,
});

test("errors are relative to theirs, and skips are counted by reason", () => {
  const outcomes: Outcome[] = [
    row("a", 10, 11),
    row("b", 10, 8),
    row("c", 10, 10),
    { group, id: "d", skipped: "missing: mbs" },
    { group, id: "e", skipped: "missing: mbs" },
  ];
  const [s] = score(outcomes);
  expect(s).toMatchObject({ n: 3, skipped: 2, reasons: { "missing: mbs": 2 }, met: true });
  expect(s!.medianError).toBeCloseTo(0.1, 12);
  expect(s!.meanError).toBeCloseTo(0.1, 12);
  expect(s!.maxError).toBeCloseTo(0.2, 12);
  expect(s!.bias).toBeCloseTo(-0.1 / 3, 12);
});

test("a group without a prediction neither meets nor misses its target", () => {
  expect(score([{ group, id: "a", skipped: "x" }])[0]).toMatchObject({
    n: 0,
    met: null,
    bias: null,
  });
});

test("labels are scored by the shares that are right", () => {
  const fits: Group = { id: "f", source: "s", kind: "fits" };
  const label = (measured: number, predicted: number): Outcome => ({
    group: fits,
    id: "x",
    measured,
    predicted,
  });
  const [s] = score([label(1, 1), label(1, 1), label(1, 1), label(1, 0), label(0, 1), label(0, 0)]);
  expect(s!.accuracy).toBeCloseTo(4 / 6, 12);
  expect(s!.balancedAccuracy).toBeCloseTo((3 / 4 + 1 / 2) / 2, 12);
});

test("rank correlation is 1 for the same order, -1 for the reverse, and shares ties", () => {
  expect(spearman([1, 2, 3], [10, 20, 90])).toBeCloseTo(1, 12);
  expect(spearman([1, 2, 3], [3, 2, 1])).toBeCloseTo(-1, 12);
  expect(spearman([1, 1, 1], [1, 2, 3])).toBe(0);
  // Ranks 0.5, 0.5, 2 against 0, 1, 2: covariance 1.5, variances 1.5 and 2.
  expect(spearman([1, 1, 2], [1, 2, 3])).toBeCloseTo(1.5 / Math.sqrt(3), 12);
});

test("quantiles are linear between neighbours", () => {
  expect(quantile([0, 1, 2, 3], 0.5)).toBe(1.5);
  expect(quantile([5], 0.9)).toBe(5);
});

test("a layout that was measured again counts once, at its median, and one alone has no order", () => {
  const model = defineModel({ layers: 4, hidden: 32, heads: 4, vocab: 50, context: 16 });
  const cluster = defineCluster({ host: "dgx-h100", hosts: 1 });
  const run = (tp: 1 | 2 | 4, measured: number, predicted: number): Outcome => ({
    ...row(`tp ${tp}`, measured, predicted),
    family: "f",
    step: { model, plan: definePlan(model, { globalBatch: 4, tp }), cluster },
  });
  const rankOf = (outcomes: readonly Outcome[]): number | undefined =>
    score(outcomes).find(({ id }) => id === "g")!.spearman;
  const once = [run(1, 7, 7), run(2, 5, 4), run(4, 4, 5)];
  const again = [run(1, 9, 7), run(1, 1, 7)];
  // Ranks 2, 1, 0 against 2, 0, 1.
  expect(rankOf([...once, ...again])).toBeCloseTo(0.5, 12);
  expect(rankOf([...again, ...again, ...again])).toBeUndefined();
  // Fewer than five measurements.
  expect(rankOf(once)).toBeUndefined();
});
