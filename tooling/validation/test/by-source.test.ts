import { expect, test } from "vitest";
import { errorsBySource } from "../src/by-source.ts";
import { likelyCause } from "../src/likely-causes.ts";
import type { Outcome } from "../src/outcome.ts";

const group = { id: "moe", source: "corpus", kind: "iteration time" };

function rows(source: string, errors: readonly number[]): Outcome[] {
  return errors.map((e, i) => ({
    group,
    id: `${source}-${i}`,
    measured: 1,
    predicted: 1 + e,
    family: `model/4096/${source}`,
  }));
}

test("errors are told source by source, where there are five rows and more", () => {
  const outcomes = [
    ...rows("a", [0.1, -0.1, 0.2, -0.2, 0.5]),
    ...rows("b", [0.1, 0.1, 0.1, 0.1]),
    ...rows("c", [-0.1, -0.1, -0.1, -0.1, -0.1]),
  ];
  const [a, c, ...others] = errorsBySource(outcomes);
  expect(others).toEqual([]);
  expect(a).toMatchObject({ group: "moe", source: "a", n: 5 });
  expect(a!.median).toBeCloseTo(0.2, 12);
  expect(a!.p90).toBeCloseTo(0.38, 12);
  expect(a!.bias).toBeCloseTo(0.1, 12);
  expect(c!.bias).toBeCloseTo(-0.1, 12);
});

test("rows of less confidence, without a family or skipped are left out", () => {
  const unsure = rows("a", [0, 0, 0, 0, 0]).map((o) => ({
    ...o,
    group: { ...group, id: "moe-unsure" },
  }));
  const alone = rows("b", [0, 0, 0, 0, 0]).map(({ group: g, id }) => ({
    group: g,
    id,
    measured: 1,
    predicted: 1,
  }));
  const skipped = [{ group, id: "x", skipped: "missing: iteration time" }];
  expect(errorsBySource([...unsure, ...alone, ...skipped])).toEqual([]);
});

test("a cause is named where one is known", () => {
  expect(likelyCause("mbskill-moonlight-selective-core_attn")).toContain("launches");
  expect(likelyCause("nobody-knows")).toBe("");
});
