import { expect, test } from "vitest";
import { timedRuns } from "../src/timing/timed-runs.ts";

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
