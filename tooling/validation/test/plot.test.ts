import { expect, test } from "vitest";
import type { Outcome } from "../src/outcome.ts";
import { scatter } from "../src/plot.ts";

const outcomes: Outcome[] = Array.from({ length: 12 }, (_, i) => ({
  group: { id: `series-${i}`, source: "s", kind: "iteration time" },
  id: String(i),
  measured: 1 + i,
  predicted: 1.1 + i,
}));

test("every series has its own colour, in its points and in the legend", () => {
  const svg = scatter(outcomes);
  const points = [...svg.matchAll(/fill="(hsl[^"]*)" fill-opacity/g)].map((m) => m[1]);
  const legend = [...svg.matchAll(/fill="(hsl[^"]*)"\/><text/g)].map((m) => m[1]);
  expect(points).toHaveLength(12);
  expect(new Set(points).size).toBe(12);
  expect(legend).toEqual(points);
});

test("neighbouring series differ in their mark too", () => {
  const marks = [...scatter(outcomes).matchAll(/scale\(1\.8\)" d="([^"]*)"/g)].map((m) => m[1]);
  expect(marks).toHaveLength(12);
  for (let i = 1; i < marks.length; i++) expect(marks[i]).not.toBe(marks[i - 1]);
});
