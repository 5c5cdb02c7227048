import fc from "fast-check";
import { expect, test } from "vitest";
import { createRng } from "@trireme/core";
import {
  expertChoice,
  hashRoute,
  jitterFactors,
  loadStatistics,
  noisyLogits,
  packChoices,
  route,
  sinkhorn,
  sinkhornRoute,
  tokensPerExpert,
  uniformRoute,
  unpackChoices,
  withSharedExperts,
} from "@trireme/moe-dispatch";
import { dot, naiveTopK, normals, randomIds, rows } from "./naive.ts";

test("with expert choice every expert takes its best tokens, and no padding", () => {
  const [tokens, experts] = [40, 8];
  const logits = normals(tokens * experts, 1);
  const padding = Uint8Array.from({ length: tokens }, (_, t) => Number(t >= 32));
  const r = expertChoice(logits, { experts, capacityFactor: 2, padding });
  expect([...tokensPerExpert(r.expertIds, experts)]).toEqual(Array(experts).fill(8));
  const scores = rows(logits, experts).map((row) => {
    const total = row.reduce((sum, l) => sum + Math.exp(l), 0);
    return row.map((l) => Math.exp(l) / total);
  });
  for (let e = 0; e < experts; e++) {
    const best = naiveTopK(
      scores.slice(0, 32).map((s) => s[e]!),
      8,
    ).sort((a, b) => a - b);
    const got = rows(r.expertIds, r.topK).flatMap((ids, t) => (ids.includes(e) ? [t] : []));
    expect(got).toEqual(best);
  }
  expect(expertChoice(new Float64Array(0), { experts, capacityFactor: 2 }).tokens).toBe(0);
});

test("expert choice takes equal scores by lowest token, masked ones never, and refuses NaN", () => {
  // Four tokens that score both experts alike: each expert takes the first two.
  const r = expertChoice(new Float64Array(8), { experts: 2, capacityFactor: 1 });
  expect(rows(r.expertIds, r.topK)).toEqual([
    [0, 1],
    [0, 1],
    [-1, -1],
    [-1, -1],
  ]);
  const all = expertChoice(Float64Array.of(-Infinity, 0, -Infinity, 0), {
    experts: 2,
    capacityFactor: 2,
  });
  expect(rows(all.expertIds, all.topK)).toEqual([[1], [1]]);
  expect(() =>
    expertChoice(Float64Array.of(0, 0, NaN, 0), { experts: 2, capacityFactor: 1 }),
  ).toThrow("token 1 has logit NaN at expert 0");
});

test("expert choice of a hundred thousand tokens takes a second or two, not a minute", () => {
  const [tokens, experts] = [100_000, 8];
  const logits = new Float32Array(normals(tokens * experts, 3));
  const start = process.cpuUsage().user;
  const r = expertChoice(logits, { experts, capacityFactor: 2 });
  // 0.13 s of the processor where it was written. Of 200,000 tokens and 64 experts, 2 s; kept in order
  // one by one those took 45.
  expect((process.cpuUsage().user - start) / 1e6).toBeLessThan(5);
  expect([...tokensPerExpert(r.expertIds, experts)]).toEqual(Array(experts).fill(25_000));
});

test("Sinkhorn balances a skewed matrix over tokens and experts", () => {
  const [tokens, experts] = [64, 4];
  const logits = normals(tokens * experts, 2).map((x, i) => x + (i % experts === 0 ? 3 : 0));
  const balanced = sinkhorn(logits, { experts, tolerance: 1e-9 });
  for (let e = 0; e < experts; e++) {
    const column = rows(balanced, experts).reduce((sum, row) => sum + row[e]!, 0);
    expect(column).toBeCloseTo(1 / experts, 6); // the guard 1e-8 leaves that much
  }
  const skewed = route(logits, { experts, topK: 1, scoring: "softmax-after" });
  const even = sinkhornRoute(logits, { experts, topK: 1 });
  const imbalance = (ids: Int32Array): number =>
    loadStatistics(tokensPerExpert(ids, experts)).imbalance;
  expect(imbalance(even.expertIds)).toBeLessThan(imbalance(skewed.expertIds) / 2);
  const e = even.expertIds[0]!;
  expect(even.weights[0]).toBeCloseTo(1 / (1 + Math.exp(-logits[e]!)), 12);
});

test("Sinkhorn refuses one NaN, which would spread to every token, and keeps a choice far from the best", () => {
  const odd = Float64Array.of(NaN, 1, 1, 5);
  expect(() => sinkhorn(odd, { experts: 2 })).toThrow("token 0 has logit NaN at expert 0");
  expect(() => sinkhornRoute(odd, { experts: 2, topK: 1 })).toThrow("token 0 has logit NaN");
  const padding = Uint8Array.of(1, 0);
  expect([...sinkhornRoute(odd, { experts: 2, topK: 1, padding }).expertIds]).toEqual([-1, 1]);
  // Its share is below the smallest number of 32 bits; only -Infinity masks.
  const far = Float32Array.of(0, -120, 0, -Infinity);
  expect([...sinkhornRoute(far, { experts: 2, topK: 2 }).expertIds]).toEqual([0, 1, 0, -1]);
});

test("hash routing depends on the token alone, with different experts, above 2^31 too", () => {
  const ids = [5, 2 ** 31 + 5, 2 ** 40 + 5, 5];
  const r = hashRoute(ids, { experts: 4, topK: 4, seed: 3 });
  for (const row of rows(r.expertIds, 4))
    expect([...row].sort((a, b) => a - b)).toEqual([0, 1, 2, 3]);
  const wide = hashRoute(ids, { experts: 1000, topK: 2, seed: 3 });
  const [first, second, third, again] = rows(wide.expertIds, 2);
  expect(again).toEqual(first);
  expect(second).not.toEqual(first);
  expect(third).not.toEqual(first);
  const many = hashRoute(
    Array.from({ length: 20_000 }, (_, i) => i),
    { experts: 16, topK: 2, seed: 1 },
  );
  // 2500 expected per expert; a deviation of 6 standard ones is 0.12.
  expect(loadStatistics(tokensPerExpert(many.expertIds, 16)).imbalance).toBeLessThan(1.12);
});

test("uniform routing is balanced and continues across shards beyond 2^53 / k", () => {
  const whole = uniformRoute({ tokens: 30, experts: 7, topK: 3 });
  const part = uniformRoute({ tokens: 20, experts: 7, topK: 3, firstToken: 10 });
  expect(part.expertIds).toEqual(whole.expertIds.slice(30));
  const { most, least } = loadStatistics(tokensPerExpert(whole.expertIds, 7));
  expect(most - least).toBeLessThanOrEqual(1);
  const far = uniformRoute({ tokens: 1, experts: 7, topK: 3, firstToken: 2 ** 53 - 1 });
  expect(far.expertIds[0]).toBe(Number((BigInt(2 ** 53 - 1) * 3n) % 7n));
});

test("noise has the spread it is told, and jitter stays within its bounds", () => {
  const n = 20_000;
  const spread = new Float64Array(n).fill(Math.log(Math.E ** 2 - 1)); // softplus: 2
  const { logits } = noisyLogits(new Float64Array(n), spread, createRng(4));
  const deviation = Math.sqrt(dot(logits, logits) / n);
  expect(deviation).toBeGreaterThan(1.95); // standard error 0.01
  expect(deviation).toBeLessThan(2.05);
  const factors = jitterFactors(1000, 0.01, createRng(5));
  expect(Math.min(...factors)).toBeGreaterThanOrEqual(0.99 - 1e-7);
  expect(Math.max(...factors)).toBeLessThanOrEqual(1.01 + 1e-7);
  expect(() => jitterFactors(1, 1, createRng(5))).toThrow("epsilon is 1");
});

test("shared experts are used by every token but padding", () => {
  const r = route(normals(3 * 4, 6), {
    experts: 4,
    topK: 2,
    scoring: "softmax-after",
    padding: Uint8Array.of(0, 1, 0),
  });
  const shared = withSharedExperts(r, {
    shared: 2,
    padding: Uint8Array.of(0, 1, 0),
    gate: Float64Array.of(0.5, 0.6, 0.7),
  });
  expect(shared.experts).toBe(6);
  expect(rows(shared.expertIds, 4).map((ids) => ids.slice(2))).toEqual([
    [4, 5],
    [-1, -1],
    [4, 5],
  ]);
  expect(rows(shared.weights, 4).map((w) => w.slice(2))).toEqual([
    [0.5, 0.5],
    [0, 0],
    [0.7, 0.7],
  ]);
  expect(rows(shared.expertIds, 4).map((ids) => ids.slice(0, 2))).toEqual(rows(r.expertIds, 2));
});

test("packed choices come back as they were", () => {
  fc.assert(
    fc.property(
      fc.constantFrom(1, 2, 254, 255, 256, 65_535),
      fc.integer({ min: 0, max: 40 }),
      fc.integer(),
      (experts, tokens, seed) => {
        const topK = Math.min(2, experts);
        const rng = createRng(seed);
        const ids = Int32Array.from({ length: tokens * topK }, () => rng.integer(experts + 1) - 1);
        const packed = packChoices(ids, { experts, topK });
        expect(packed.ids.BYTES_PER_ELEMENT).toBe(experts <= 255 ? 1 : 2);
        expect(unpackChoices(packed, tokens)).toEqual(ids);
      },
    ),
  );
  const packed = packChoices(randomIds({ tokens: 3, topK: 2, experts: 8, seed: 1 }), {
    experts: 8,
    topK: 2,
  });
  expect(() => unpackChoices(packed, 4)).toThrow("4 tokens x top-2 needs 8");
});

test("seeds and lengths that are none are refused", () => {
  expect(() => hashRoute([1], { experts: 2, topK: 1, seed: NaN })).toThrow("seed is NaN");
  expect(() => jitterFactors(-1, 0.1, createRng(0))).toThrow("length is -1");
});
