import fc from "fast-check";
import { longShort, packHybrid } from "@trireme/dataloader";
import { expect, test } from "vitest";

const quadratic = (tokens: number): number => tokens + tokens ** 2 / 1000;

test("the one long sample is cut, the short ones stay whole", () => {
  const plan = longShort({
    lengths: [100, 8000, 90, 110, 100],
    ranks: 4,
    costOf: quadratic,
    // More than a short sample gains by being cut.
    exchangeOf: () => 200,
  });
  expect(plan.long).toEqual([1]);
  expect(plan.rankOf[1]).toBe(-1);
  expect([...plan.rankOf].filter((rank) => rank >= 0).sort((a, b) => a - b)).toEqual([0, 1, 2, 3]);
  expect(plan.makespan).toBeCloseTo(quadratic(8000) / 4 + 200 + quadratic(110), 9);
});

test("no other split by length is faster, and the makespan is what it says", () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 5000 }), { maxLength: 12 }),
      fc.integer({ min: 1, max: 5 }),
      fc.nat(200),
      (lengths, ranks, exchange) => {
        const options = { lengths, ranks, costOf: quadratic, exchangeOf: () => exchange };
        const plan = longShort(options);
        const loads = new Float64Array(ranks);
        plan.rankOf.forEach((rank, i) => {
          if (rank >= 0) loads[rank]! += quadratic(lengths[i]!);
        });
        const cut = plan.long.reduce(
          (sum, i) => sum + quadratic(lengths[i]!) / ranks + exchange,
          0,
        );
        expect(plan.makespan).toBeCloseTo(cut + Math.max(...loads), 6);
        // No worse than all whole (within the bound of the greedy deal, which it uses) or all cut.
        const all = lengths.reduce((sum, l) => sum + quadratic(l) / ranks + exchange, 0);
        if (ranks > 1) expect(plan.makespan).toBeLessThanOrEqual(all + 1e-6);
        // The long ones are the longest.
        const whole = lengths.filter((_, i) => plan.rankOf[i]! >= 0);
        for (const i of plan.long) expect(lengths[i]).toBeGreaterThanOrEqual(Math.max(0, ...whole));
      },
    ),
  );
});

test("what one rank has no memory for is cut, and what all have none for is refused", () => {
  const free = { lengths: [900, 900], ranks: 2, costOf: quadratic };
  expect(longShort(free).long).toEqual([]);
  expect(longShort({ ...free, maxTokens: 600 }).long).toEqual([0, 1]);
  expect(() => longShort({ ...free, maxTokens: 400 })).toThrow(
    "sample 0 has 900 tokens; 2 ranks hold 400 each, 800 together; use at least 3 ranks",
  );
  expect(() => longShort({ ...free, ranks: 0 })).toThrow("0 ranks");
  expect(longShort({ ...free, lengths: [] })).toMatchObject({ long: [], makespan: 0 });
});

test("rows of several modalities keep both limits and every sample", () => {
  const sample = fc.tuple(fc.integer({ min: 0, max: 100 }), fc.integer({ min: 0, max: 50 }));
  fc.assert(
    fc.property(fc.array(sample, { maxLength: 40 }), (samples) => {
      const tokens = samples.map(([t]) => t);
      const encoder = samples.map(([, e]) => e);
      const packed = packHybrid({ tokens, encoder, capacity: 100, encoderCapacity: 50 });
      const sums = Array.from({ length: packed.rows }, () => [0, 0]);
      packed.rowOf.forEach((row, i) => {
        sums[row]![0]! += tokens[i]!;
        sums[row]![1]! += encoder[i]!;
      });
      expect(sums).toEqual(sums.map((_, row) => [packed.tokens[row], packed.encoder[row]]));
      for (const [t, e] of sums) expect(t! <= 100 && e! <= 50).toBe(true);
      // First fit: no two rows could be one.
      for (let a = 0; a < sums.length; a++) {
        for (let b = a + 1; b < sums.length; b++) {
          const together = sums[a]!.map((sum, k) => sum + sums[b]![k]!);
          expect(together[0]! > 100 || together[1]! > 50).toBe(true);
        }
      }
    }),
  );
  expect(() =>
    packHybrid({ tokens: [1], encoder: [60], capacity: 9, encoderCapacity: 50 }),
  ).toThrow("sample 0 has 1 tokens and 60 encoder tokens, a row 9 and 50; cut it first");
  expect(() => packHybrid({ tokens: [1], encoder: [], capacity: 9, encoderCapacity: 5 })).toThrow(
    "encoder tokens of 0 samples",
  );
  expect(() => packHybrid({ tokens: [], encoder: [], capacity: 0, encoderCapacity: 5 })).toThrow(
    "rows of 0 tokens",
  );
});

test("lengths, times and limits that are none are refused", () => {
  const o = { lengths: [5, 4], ranks: 2, costOf: (tokens: number) => tokens };
  expect(() => longShort({ ...o, lengths: [5, NaN] })).toThrow("sample 1 has NaN tokens");
  expect(() => longShort({ ...o, costOf: () => NaN })).toThrow(
    "cost of sample 0 with 5 tokens is NaN",
  );
  expect(() => longShort({ ...o, exchangeOf: () => -1 })).toThrow("exchange of sample 0");
  expect(() => longShort({ ...o, maxTokens: NaN })).toThrow("maxTokens NaN");
});
