import { expect, test } from "vitest";
import { median, timedRuns } from "../src/timing/timed-runs.ts";

/** Which runs count, where each takes a second. */
function runs(budget: number): boolean[] {
  let time = 0;
  const counted: boolean[] = [];
  for (const counts of timedRuns(budget, () => time)) {
    time++;
    counted.push(counts);
  }
  return counted;
}

test("three runs count whatever the budget, and not the first of all", () => {
  expect(runs(0.1)).toEqual([false, true, true, true]);
  expect(runs(6)).toEqual([false, true, true, true, true, true]);
  expect(runs(1e6)).toHaveLength(201);
});

test("the median of an even number of times is between the two in the middle", () => {
  expect(median([5, 1, 9])).toBe(5);
  expect(median([5, 1, 9, 6])).toBe(5.5);
  expect(median([2])).toBe(2);
});
