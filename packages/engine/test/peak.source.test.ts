import { expect, test } from "vitest";
import { worstPeak } from "./peak.ts";

// The whole grid is in slow/memory.test.ts.
test.each([
  [{ dp: 2, zero: 3, recompute: "full", globalBatch: 4, microbatch: 2 }],
  [{ pp: 2, schedule: "zb-h1", globalBatch: 4, microbatch: 2 }],
  [{ tp: 2, sequenceParallel: true, globalBatch: 4, microbatch: 2 }],
] as const)("%j: every rank's peak is the estimate within 0.15 of it", async (plan) => {
  expect(Math.abs(await worstPeak(plan))).toBeLessThan(0.15);
});
