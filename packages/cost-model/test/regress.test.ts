import { readFileSync } from "node:fs";
import { parseMeasurements } from "@trireme/cost-model";
import { regressOperators, regressedPricer } from "@trireme/cost-model/regress";
import { expect, test } from "vitest";

const text = readFileSync(new URL("vectors/cpu-operators.csv", import.meta.url), "utf8");
const measurements = parseMeasurements(text);
const forest = regressOperators({ measurements, trees: 20 });

test("forests predict operators of shapes that they have not seen", () => {
  expect(forest.report.test.n).toBeGreaterThan(80);
  // Shapes beside the hull come out at the nearest leaf, which is what the p90 shows.
  expect(forest.report.test.median).toBeLessThan(0.12);
  expect(forest.report.train.median).toBeLessThan(forest.report.test.median);
});

test("the same seed grows the same forests", () => {
  const again = regressOperators({ measurements: text, trees: 20 });
  const { operator } = measurements[5]!;
  expect(again.time(operator)).toBe(forest.time(operator));
});

test("a forest is not asked for what lies outside its measurements", () => {
  const pricer = regressedPricer(forest);
  const { operator } = measurements.find((m) => m.operator.kind === "gemm")!;
  expect(pricer.operator(operator)).toBeGreaterThan(0);
  const [, m, n, k] = operator.shape;
  const large = { ...operator, key: "large", shape: [1, m! * 1000, n!, k!] };
  expect(() => pricer.operator(large)).toThrow("outside the measured");
  expect(() => pricer.operator({ ...operator, key: "other", form: "bf16" })).toThrow(
    "nothing was measured of gemm/bf16",
  );
});

test("a number of trees that is none is refused", () => {
  expect(() => regressOperators({ measurements, trees: 0 })).toThrow("trees 0");
});
