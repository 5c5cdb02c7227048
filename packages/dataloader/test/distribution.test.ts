import fc from "fast-check";
import { expect, test } from "vitest";
import { type BalanceMethod, distribute, scaleSources, smoothWeights } from "@trireme/dataloader";

const methods: readonly BalanceMethod[] = ["order", "greedy", "karmarkar-karp"];

test("every sample goes to one place, counts are equal, loads are sums", () => {
  fc.assert(
    fc.property(
      fc.record({
        ranks: fc.integer({ min: 1, max: 4 }),
        microbatches: fc.integer({ min: 1, max: 4 }),
        rows: fc.nat(4),
      }),
      fc.constantFrom(...methods),
      fc.array(fc.nat(1000), { minLength: 64, maxLength: 64 }),
      ({ ranks, microbatches, rows }, method, pool) => {
        const costs = pool.slice(0, ranks * microbatches * rows);
        const { rankOf, microbatchOf, loads, imbalance } = distribute({
          costs,
          ranks,
          microbatches,
          method,
        });
        const counts = new Float64Array(ranks * microbatches);
        const sums = new Float64Array(ranks * microbatches);
        rankOf.forEach((rank, sample) => {
          const cell = rank * microbatches + microbatchOf[sample]!;
          counts[cell]!++;
          sums[cell]! += costs[sample]!;
        });
        expect(counts).toEqual(new Float64Array(ranks * microbatches).fill(rows));
        expect(loads).toEqual(sums);
        expect(imbalance).toBeGreaterThanOrEqual(1 - 1e-12);
      },
    ),
  );
});

test("in order it is the loader's deal; balanced, the busiest rank has less to do", () => {
  const costs = [9, 9, 9, 9, 1, 1, 1, 1];
  const inOrder = distribute({ costs, ranks: 2, microbatches: 2, method: "order" });
  expect([...inOrder.rankOf]).toEqual([0, 0, 0, 0, 1, 1, 1, 1]);
  expect([...inOrder.microbatchOf]).toEqual([0, 0, 1, 1, 0, 0, 1, 1]);
  expect(inOrder.imbalance).toBe(1.8);
  for (const method of ["greedy", "karmarkar-karp"] as const) {
    const even = distribute({ costs, ranks: 2, microbatches: 2, method });
    expect([...even.loads]).toEqual([10, 10, 10, 10]);
    expect(even.imbalance).toBe(1);
  }
});

test("counts that do not divide are refused with the nearest, or allowed where counts may differ", () => {
  const options = { costs: [1, 2, 3, 4, 5], ranks: 2, microbatches: 1, method: "greedy" } as const;
  expect(() => distribute(options)).toThrow(
    "5 samples do not divide over ranks(2) x microbatches(1) = 2; the nearest is 6",
  );
  expect([...distribute({ ...options, equalCounts: false }).loads]).toEqual([8, 7]);
  expect(() => distribute({ ...options, ranks: 0 })).toThrow("ranks 0");
});

test("sources get loaders by weight and cost, and enough of them", () => {
  const sources = [
    { secondsPerSample: 0.01, bytesPerLoader: 1e6 },
    { secondsPerSample: 0.1, bytesPerLoader: 2e6 },
    { secondsPerSample: 0.1, bytesPerLoader: 2e6 },
  ];
  const scaling = scaleSources({
    sources,
    weights: [0.5, 0.5, 0],
    samplesPerSecond: 100,
    headroom: 1,
  });
  expect([...scaling.loaders]).toEqual([1, 5, 0]);
  expect(scaling.capacity).toBe(100);
  expect(scaling.memory).toBe(11e6);
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 100 }), { minLength: 1, maxLength: 6 }),
      fc.integer({ min: 1, max: 5000 }),
      (parts, rate) => {
        const sum = parts.reduce((a, b) => a + b, 0);
        const profiles = parts.map((part) => ({
          secondsPerSample: part / 1000,
          bytesPerLoader: 1,
        }));
        const found = scaleSources({
          sources: profiles,
          weights: parts.map((part) => part / sum),
          samplesPerSecond: rate,
        });
        expect(found.capacity).toBeGreaterThanOrEqual(rate);
      },
    ),
  );
  expect(() => scaleSources({ sources, weights: [1], samplesPerSecond: 1 })).toThrow(
    "1 weights for 3 sources",
  );
  expect(() => scaleSources({ sources, weights: [2, 0, 0], samplesPerSecond: 1 })).toThrow(
    "source 0 has weight 2",
  );
  expect(smoothWeights([1, 0], [0, 1], 0.25)).toEqual([0.75, 0.25]);
  expect(() => smoothWeights([1], [1], 0)).toThrow("rate 0");
});
