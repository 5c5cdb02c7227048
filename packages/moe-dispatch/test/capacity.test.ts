import fc from "fast-check";
import { expect, test } from "vitest";
import {
  adaptiveCapacity,
  dropTokens,
  expertCapacity,
  tokensPerExpert,
} from "@trireme/moe-dispatch";
import { normals, randomIds } from "./naive.ts";

test("capacities are the published ones", () => {
  const published = [
    [32, 2, 4, 1, 16],
    [16, 2, 8, 1.25, 5],
    [16, 2, 8, 0, 0],
    [10, 1, 4, 1, 3],
    [7, 2, 4, 1.5, 6],
    [1, 1, 64, 1, 1],
  ] as const;
  for (const [tokens, topK, experts, factor, capacity] of published) {
    expect(expertCapacity({ tokens, topK, experts, factor })).toBe(capacity);
  }
});

test("a capacity that is whole is not rounded up, has its minimum, and does not wrap", () => {
  expect(expertCapacity({ tokens: 25, topK: 8, experts: 4, factor: 1.1 })).toBe(55);
  expect(expertCapacity({ tokens: 100, topK: 3, experts: 10, factor: 0.7 })).toBe(21);
  expect(expertCapacity({ tokens: 1, topK: 1, experts: 64, factor: 1, minimum: 4 })).toBe(4);
  expect(expertCapacity({ tokens: 2 ** 33, topK: 8, experts: 16, factor: 1.25 })).toBe(
    1.25 * 2 ** 32,
  );
  expect(expertCapacity({ tokens: 0, topK: 8, experts: 16, factor: 1 })).toBe(0);
});

test("an adaptive capacity takes what is needed, or at most the capacity of its factor", () => {
  const o = { tokens: 16, topK: 2, experts: 4 };
  const counts = [12, 3, 17, 0];
  expect(adaptiveCapacity(counts, { ...o, factor: 0 })).toBe(17);
  expect(adaptiveCapacity(counts, { ...o, factor: -1.5 })).toBe(12);
  expect(adaptiveCapacity(counts, { ...o, factor: -4 })).toBe(17);
  expect(adaptiveCapacity(counts, { ...o, factor: 1.25 })).toBe(10);
  expect(() => adaptiveCapacity(counts, { ...o, factor: Number.NaN })).toThrow("factor is NaN");
  expect(() => adaptiveCapacity([1, 2], { ...o, factor: 0 })).toThrow(
    "counts holds 2 elements, but 4 experts needs 4",
  );
  expect(() => adaptiveCapacity([1, NaN, 0, 0], { ...o, factor: 0 })).toThrow(
    "count of expert 1 is NaN",
  );
});

const routing = (seed: number, tokens = 37, experts = 6, topK = 3) => {
  const expertIds = randomIds({ tokens, topK, experts, seed, holes: true });
  // Few different weights: ties are common.
  const weights = normals(tokens * topK, seed).map((x, i) =>
    expertIds[i] === -1 ? 0 : Math.round(Math.abs(x) * 4) / 4,
  );
  return { tokens, experts, topK, expertIds, weights };
};

test("dropping keeps what the policy says, equal weights by lowest token", () => {
  fc.assert(
    fc.property(
      fc.integer(),
      fc.integer({ min: 0, max: 25 }),
      fc.constantFrom("probability" as const, "position" as const),
      fc.constantFrom(1, 2, 3, 6),
      (seed, capacity, policy, deviceGroups) => {
        const r = routing(seed);
        const size = 6 / deviceGroups;
        const d = dropTokens(r, { capacity, policy, deviceGroups });
        let kept = 0;
        for (let g = 0; g < deviceGroups; g++) {
          const slots = [...r.expertIds.keys()].filter(
            (i) => r.expertIds[i] !== -1 && Math.floor(r.expertIds[i]! / size) === g,
          );
          if (policy === "probability")
            slots.sort((a, b) => r.weights[b]! - r.weights[a]! || a - b);
          for (const i of slots.slice(0, capacity)) {
            expect([d.expertIds[i], d.weights[i]]).toEqual([r.expertIds[i], r.weights[i]]);
            kept++;
          }
          for (const i of slots.slice(capacity))
            expect([d.expertIds[i], d.weights[i]]).toEqual([-1, 0]);
        }
        const filled = tokensPerExpert(r.expertIds, 6).reduce((a, b) => a + b, 0);
        expect(d.dropped).toBe(filled - kept);
      },
    ),
  );
});

test("a capacity of all tokens drops nothing, and the routing that came in is not changed", () => {
  const r = routing(5);
  const before = r.expertIds.slice();
  const d = dropTokens(r, { capacity: r.tokens, policy: "probability" });
  expect(d.dropped).toBe(0);
  expect(d.expertIds).toEqual(r.expertIds);
  dropTokens(r, { capacity: 1, policy: "position" });
  expect(r.expertIds).toEqual(before);
});
