import { accelerator } from "@trireme/topology";
import { expect, test } from "vitest";
import { coverage, firstHalf } from "../src/coverage.ts";
import { conformalFactors } from "../src/interval-factors.ts";
import type { Compared } from "../src/outcome.ts";

const ids = Array.from({ length: 2000 }, (_, i) => `row-${i}`);
const a100 = accelerator("a100-80");

test("ids are split into halves", () => {
  const share = ids.filter(firstHalf).length / ids.length;
  // A fair coin thrown 2,000 times stays within 5 % of a half but once in 10^5 times.
  expect(Math.abs(share - 0.5)).toBeLessThan(0.05);
});

test("factors lie at 0.1 and 0.9 times n + 1, outwards to 0.01, and hold the prediction", () => {
  // Of nine, the first and the ninth: another one lies below the first with chance 1 in 10.
  const nine = [0.5, 0.8, 0.9, 0.95, 1, 1.05, 1.1, 1.2, 1.6];
  expect(conformalFactors(nine)).toEqual([0.5, 1.6]);
  // Of 19, the second and the eighteenth, in any order.
  const many = Array.from({ length: 19 }, (_, i) => 0.9 + 0.011 * i);
  expect(conformalFactors(many.toReversed())).toEqual([0.91, 1.09]);
  // Of 14, halfway between neighbours: 0.1 x 15 = 1.5.
  const between = [0.6, 0.71, ...Array.from({ length: 10 }, () => 1), 1.3, 1.41];
  expect(conformalFactors(between)).toEqual([0.65, 1.36]);
  expect(conformalFactors([1.2, 1.3])).toEqual([1, 1.3]);
  expect(conformalFactors([1])).toEqual([1, 1]);
});

test("another draw lies inside four times in five, however few were drawn", () => {
  // Even ranks: n draws and one more, each order as likely; the share follows from ranks alone, whatever the law.
  let seed = 7;
  const next = (): number =>
    (seed = (Math.imul(seed, 48_271) >>> 0) % 0x7f_ff_ff_ff) / 0x7f_ff_ff_ff;
  for (const n of [9, 12, 15, 30]) {
    let inside = 0;
    const times = 4000;
    for (let i = 0; i < times; i++) {
      const [low, high] = conformalFactors(Array.from({ length: n }, () => 0.5 + next()));
      const drawn = 0.5 + next();
      if (low <= drawn && drawn <= high) inside++;
    }
    // Three standard deviations of 4,000 draws, 0.019, and rounding outwards, 0.02.
    expect(Math.abs(inside / times - 0.8)).toBeLessThan(0.04);
  }
});

/** Measured over predicted from 0.5 to 1.5, evenly, on one A100. */
const rows: Compared[] = ids.map((id, i) => ({
  group: { id: "g", source: i % 2 === 0 ? "one" : "two", kind: "iteration time" },
  id,
  measured: 0.5 + ((i * 619) % 2000) / 2000,
  predicted: 1,
  claim: { kind: "step", accelerator: a100 },
}));

test("each half is judged by the other, and each source by the others", () => {
  const [c, ...parts] = coverage(rows);
  expect(c!.n).toBe(2000);
  expect(Math.abs(c!.inside - 0.8)).toBeLessThan(0.03);
  for (const half of c!.halves) expect(Math.abs(half - 0.8)).toBeLessThan(0.05);
  expect(Math.abs(c!.otherSources - 0.8)).toBeLessThan(0.03);
  expect(c!.met).toBe(true);
  expect(parts).toEqual([]);
});

test("a source that differs from the others is seen as such, and a kind's parts are told apart", () => {
  const biased = rows.map((row) =>
    row.group.source === "two"
      ? { ...row, measured: row.measured * 3, group: { ...row.group, kind: "other time" } }
      : row,
  );
  const [c, ...parts] = coverage(biased);
  expect(c!.inside).toBeGreaterThan(0.75);
  expect(c!.otherSources).toBeLessThan(0.3);
  expect(parts.map((part) => part.kind)).toEqual(["step: iteration time", "step: other time"]);
  expect(parts.every((part) => part.met === undefined)).toBe(true);
});

test("a kind without a second source or without a claim is not judged by others", () => {
  const alone = rows.map((row) => ({ ...row, group: { ...row.group, source: "one" } }));
  expect(coverage(alone)[0]!.otherSources).toBe(0);
  const bare = rows.map(({ group, id, measured, predicted }) => ({
    group,
    id,
    measured,
    predicted,
  }));
  expect(coverage(bare)).toEqual([]);
});
