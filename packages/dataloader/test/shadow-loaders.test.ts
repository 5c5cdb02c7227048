import { planShadows } from "@trireme/dataloader";
import { expect, test } from "vitest";

const candidate = { recovery: 100, takeover: 1, failureRate: 1e-3, bytes: 10 };

test("shadows go where they save the most waiting for a byte, within the budget", () => {
  const plan = planShadows(
    [
      candidate,
      { ...candidate, bytes: 40 },
      { ...candidate, recovery: 200 },
      { ...candidate, recovery: 1 },
    ],
    20,
  );
  expect(plan.shadowed).toEqual([0, 2]);
  expect(plan.bytes).toBe(20);
  // Lost for each second: (100 + 100 + 200 + 1) and (1 + 100 + 1 + 1) thousandths.
  expect(plan.waitingWithout).toBeCloseTo(0.401 / 1.401, 12);
  expect(plan.waitingWith).toBeCloseTo(0.103 / 1.103, 12);
  expect(plan.speedup).toBeCloseTo(1.401 / 1.103, 12);
});

test("what batches made ahead cover is no waiting, and a shadow that saves nothing is not held", () => {
  const plan = planShadows([candidate], 100, 100);
  expect(plan).toEqual({ shadowed: [], bytes: 0, waitingWithout: 0, waitingWith: 0, speedup: 1 });
  expect(planShadows([], 0).speedup).toBe(1);
  expect(() => planShadows([candidate], -1)).toThrow("a budget of -1 bytes");
  expect(() => planShadows([{ ...candidate, recovery: NaN }], 1)).toThrow(
    "process 0 has recovery NaN",
  );
});

test("two shadows bring the published 1.08x under failures that cost 8 per cent", () => {
  // OVERLORD, two shadow loaders: 1.08x effective training time. Two loaders that each fail once in
  // 40 minutes and need 96 s to come back lose 8 per cent; taking over costs next to nothing.
  const loader = { recovery: 96, takeover: 0.1, failureRate: 1 / 2400, bytes: 1 };
  expect(planShadows([loader, loader], 2).speedup).toBeCloseTo(1.08, 3);
});

test("time that batches last is a number", () => {
  expect(() => planShadows([], 0, NaN)).toThrow("batches made ahead for NaN s");
});
