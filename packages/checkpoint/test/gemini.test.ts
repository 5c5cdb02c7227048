import { expect, test } from "vitest";
import { geminiPlacement, geminiRecovery } from "@trireme/checkpoint";

test("recovery probabilities are the published ones", () => {
  // 1 − g·C(N−m, k−m)/C(N, k), to the digits printed.
  expect(geminiRecovery(16, 2, 2)).toBeCloseTo(0.9333, 4);
  expect(geminiRecovery(16, 2, 3)).toBeCloseTo(0.8, 9);
  expect(geminiRecovery(128, 2, 2)).toBeCloseTo(0.99213, 5);
  expect(geminiRecovery(1000, 2, 2)).toBeCloseTo(0.999, 4);
});

/** Counts over all subsets, by the placement itself. */
function counted(machines: number, replicas: number, failed: number): number {
  const placement = geminiPlacement(machines, replicas);
  let all = 0;
  let kept = 0;
  for (let set = 0; set < 2 ** machines; set++) {
    let bits = 0;
    for (let i = 0; i < machines; i++) bits += (set >> i) & 1;
    if (bits !== failed) continue;
    all++;
    if (placement.every((copies) => copies.some((i) => ((set >> i) & 1) === 0))) kept++;
  }
  return kept / all;
}

test("they are exact: equal to counting every set of failures, groups and rings alike", () => {
  for (let machines = 1; machines <= 10; machines++) {
    for (let replicas = 1; replicas <= Math.min(5, machines); replicas++) {
      for (let failed = 0; failed <= machines; failed++) {
        // Rounding of some twenty products.
        const exact = counted(machines, replicas, failed);
        expect(geminiRecovery(machines, replicas, failed)).toBeCloseTo(exact, 12);
      }
    }
  }
});

test("each machine keeps m copies, each copy is on m machines, its own among them", () => {
  for (const [machines, replicas] of [
    [16, 2],
    [17, 2],
    [7, 3],
    [5, 5],
    [1, 1],
  ] as const) {
    const placement = geminiPlacement(machines, replicas);
    const kept = new Array<number>(machines).fill(0);
    for (const [machine, copies] of placement.entries()) {
      expect(copies[0]).toBe(machine);
      expect(new Set(copies).size).toBe(replicas);
      for (const at of copies) kept[at]!++;
    }
    expect(kept).toEqual(Array(machines).fill(replicas));
  }
});

test("large clusters stay finite, and counts that cannot be are refused", () => {
  // C(5000, 100) · 2^100 / C(10000, 100) in exact integers: no pair twice.
  expect(geminiRecovery(10_000, 2, 100)).toBeCloseTo(0.6065408713197099, 10);
  expect(geminiRecovery(100_001, 3, 3)).toBeGreaterThan(1 - 1e-9);
  expect(() => geminiRecovery(4, 2, 5)).toThrow("failed 5: it is an integer in 0..4");
  expect(() => geminiPlacement(1, 2)).toThrow("machines 1: it is an integer in 2 (the replicas)");
  expect(() => geminiPlacement(4, 0)).toThrow("replicas 0");
});
