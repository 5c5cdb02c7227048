import fc from "fast-check";
import { createRng } from "@trireme/core";
import { expect, test } from "vitest";
import { balanceGreedy, balanceKarmarkarKarp, sequenceCost } from "@trireme/dataloader";

const methods = [balanceGreedy, balanceKarmarkarKarp];

test("both methods deal each item once, with the loads they say, within their bounds", () => {
  fc.assert(
    fc.property(
      fc.array(fc.nat(1000), { maxLength: 40 }),
      fc.integer({ min: 1, max: 7 }),
      fc.boolean(),
      (costs, groups, equalCounts) => {
        for (const balance of methods) {
          const { groupOf, loads } = balance({ costs, groups, equalCounts });
          const sums = new Float64Array(groups);
          const counts = new Float64Array(groups);
          groupOf.forEach((group, item) => {
            sums[group]! += costs[item]!;
            counts[group]!++;
          });
          expect(sums).toEqual(loads);
          const uneven = Math.max(...counts) - Math.min(...counts);
          expect(equalCounts ? uneven : 0).toBeLessThanOrEqual(1);
          // No deal beats the mean and the largest item; both methods end within an item of the least.
          const largest = Math.max(0, ...costs);
          const floor = Math.max(costs.reduce((a, b) => a + b, 0) / groups, largest);
          expect(Math.max(...loads)).toBeLessThanOrEqual(equalCounts ? Infinity : floor + largest);
        }
      },
    ),
  );
});

test("differencing finds the even split that greedy misses", () => {
  const costs = [8, 7, 6, 5, 4];
  expect([...balanceGreedy({ costs, groups: 2 }).loads].sort((a, b) => a - b)).toEqual([13, 17]);
  // Differences are merged until one is left, here 2.
  expect([...balanceKarmarkarKarp({ costs, groups: 2 }).loads].sort((a, b) => a - b)).toEqual([
    14, 16,
  ]);
});

test("greedy keeps Graham's bound against the best deal there is", () => {
  const best = (costs: readonly number[], groups: number): number => {
    const loads = new Array<number>(groups).fill(0);
    const place = (item: number): number => {
      if (item === costs.length) return Math.max(...loads);
      let least = Infinity;
      for (let g = 0; g < groups; g++) {
        loads[g]! += costs[item]!;
        least = Math.min(least, place(item + 1));
        loads[g]! -= costs[item]!;
      }
      return least;
    };
    return place(0);
  };
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 7 }),
      fc.integer({ min: 1, max: 3 }),
      (costs, groups) => {
        const optimum = best(costs, groups);
        expect(Math.max(...balanceGreedy({ costs, groups }).loads)).toBeLessThanOrEqual(
          optimum * (4 / 3 - 1 / (3 * groups)) + 1e-9,
        );
      },
    ),
  );
});

test("on skewed lengths balancing brings the slowest rank near the mean", () => {
  const rng = createRng(5);
  const lengths = Array.from({ length: 512 }, () =>
    Math.min(4096, Math.ceil(400 * Math.exp(1.2 * rng.normal()))),
  );
  const cost = { linear: 1, quadratic: 1 / 4096 };
  const costs = lengths.map((length) => sequenceCost(cost, [length]));
  const mean = costs.reduce((a, b) => a + b, 0) / 16;
  const inOrder = new Float64Array(16);
  costs.forEach((value, i) => (inOrder[Math.floor(i / 32)]! += value));
  expect(Math.max(...inOrder) / mean).toBeGreaterThan(1.2);
  for (const balance of methods) {
    // 32 items a rank, the largest below a rank's mean: within a per cent is easy for either.
    expect(Math.max(...balance({ costs, groups: 16 }).loads) / mean).toBeLessThan(1.01);
    expect(
      Math.max(...balance({ costs, groups: 16, equalCounts: true }).loads) / mean,
    ).toBeLessThan(1.05);
  }
});

test("30 + 70 tokens in a row cost 16 per cent more attention than 50 + 50", () => {
  // OVERLORD's example.
  const attention = { linear: 0, quadratic: 1 };
  expect(sequenceCost(attention, [30, 70]) / sequenceCost(attention, [50, 50])).toBe(1.16);
});

test("costs and groups that make no sense are refused", () => {
  for (const balance of methods) {
    expect(() => balance({ costs: [1], groups: 0 })).toThrow("0 groups");
    expect(() => balance({ costs: [1, -1], groups: 2 })).toThrow("item 1 costs -1");
    expect(() => balance({ costs: [Infinity], groups: 2 })).toThrow("item 0 costs Infinity");
    expect(balance({ costs: [], groups: 3 }).loads).toEqual(new Float64Array(3));
  }
});
