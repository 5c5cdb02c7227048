import { expect, test } from "vitest";
import { loadStatistics, routingTrace, tokensPerExpert, zipfFor } from "@trireme/moe-dispatch";
import { rows } from "./naive.ts";

test("statistics of equal loads, of all load on one, and of none", () => {
  expect(loadStatistics([5, 5, 5, 5])).toEqual({
    total: 20,
    mean: 5,
    most: 5,
    least: 5,
    imbalance: 1,
    variation: 0,
    gini: 0,
    entropy: 1,
    empty: 0,
  });
  const one = loadStatistics([0, 8, 0, 0]);
  expect([one.imbalance, one.gini, one.entropy, one.empty]).toEqual([4, 0.75, 0, 3]);
  expect(one.variation).toBeCloseTo(Math.sqrt(3), 12);
  expect(loadStatistics([0, 0])).toMatchObject({
    imbalance: 1,
    variation: 0,
    gini: 0,
    entropy: 1,
    empty: 2,
  });
  expect(loadStatistics([1, 2, 3, 4]).gini).toBeCloseTo(0.25, 12);
  expect(() => loadStatistics([])).toThrow("at least 1");
  expect(() => loadStatistics([1, -1])).toThrow("-1..1");
});

const base = { experts: 64, topK: 4, tokens: 20_000, seed: 7 };
const counts = (o: Parameters<typeof routingTrace>[0], step: number): number[] => [
  ...tokensPerExpert(routingTrace(o).choices(step), o.experts),
];
const imbalance = (c: ArrayLike<number>): number => loadStatistics(c).imbalance;

test("a trace is the same for a seed, differs between steps, and its experts are different", () => {
  const o = {
    ...base,
    tokens: 500,
    zipf: 1.5,
    drift: 0.3,
    burst: 0.2,
    correlation: 0.5,
    sequence: 50,
  };
  expect(routingTrace(o).choices(3)).toEqual(routingTrace(o).choices(3));
  expect(routingTrace(o).choices(3)).not.toEqual(routingTrace(o).choices(4));
  expect(routingTrace({ ...o, seed: 8 }).choices(3)).not.toEqual(routingTrace(o).choices(3));
  for (const ids of rows(routingTrace(o).choices(3), 4)) expect(new Set(ids).size).toBe(4);
  const every = routingTrace({ experts: 3, topK: 3, tokens: 50, seed: 1, zipf: 8 }).choices(0);
  for (const ids of rows(every, 3)) expect([...ids].sort((a, b) => a - b)).toEqual([0, 1, 2]);
  expect(routingTrace({ ...base, tokens: 0 }).choices(0).length).toBe(0);
});

test("popularity is a Zipf law, and the choices follow it", () => {
  const o = { ...base, topK: 1, zipf: 1, tokens: 200_000 };
  const p = routingTrace(o).popularity(0);
  const sorted = [...p].sort((a, b) => b - a);
  sorted.forEach((x, i) => expect(x / sorted[0]!).toBeCloseTo(1 / (i + 1), 12));
  const c = counts(o, 0);
  // Chi-squared with 63 degrees of freedom: above 130 once in a million.
  const chi = c.reduce((sum, n, e) => sum + (n - o.tokens * p[e]!) ** 2 / (o.tokens * p[e]!), 0);
  expect(chi).toBeLessThan(130);
  expect(imbalance(counts(base, 0))).toBeLessThan(1.15); // uniform: 1250 each, 4 standard deviations
});

test("the exponent for an imbalance gives that imbalance", () => {
  for (const wanted of [1, 1.5, 4]) {
    const zipf = zipfFor({ experts: 64, imbalance: wanted });
    const p = routingTrace({ ...base, zipf }).popularity(0);
    expect(imbalance(p)).toBeCloseTo(wanted, 6);
  }
  expect(() => zipfFor({ experts: 64, imbalance: 64 })).toThrow("it lies in [1, 64)");
});

test("drift wanders slowly, keeps its spread, and forgets", () => {
  const trace = routingTrace({ ...base, experts: 200, drift: 0.5, driftSteps: 20 });
  const logs = (step: number): number[] => {
    const l = [...trace.popularity(step)].map(Math.log);
    const mean = l.reduce((a, b) => a + b, 0) / l.length;
    return l.map((x) => x - mean);
  };
  const correlation = (a: number[], b: number[]): number => {
    const dot = (x: number[], y: number[]): number => x.reduce((sum, v, i) => sum + v * y[i]!, 0);
    return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b));
  };
  for (const step of [0, 50, 1000]) {
    const deviation = Math.sqrt(logs(step).reduce((sum, x) => sum + x * x, 0) / 200);
    expect(deviation).toBeGreaterThan(0.4); // standard error 0.025
    expect(deviation).toBeLessThan(0.6);
  }
  // Expected e^(-1/20) = 0.951 after a step and e^-10 after 200, with a standard error of 0.07.
  expect(correlation(logs(100), logs(101))).toBeGreaterThan(0.9);
  expect(Math.abs(correlation(logs(100), logs(300)))).toBeLessThan(0.3);
});

test("bursts make one expert hot for as long as they last", () => {
  const trace = routingTrace({ ...base, burst: 0.05, burstFactor: 10, burstSteps: 5 });
  const hot = Array.from({ length: 400 }, (_, step) => imbalance(trace.popularity(step)) > 1.01);
  const share = hot.filter(Boolean).length / 400;
  // Expected 1 - 0.95^5 = 0.226; runs of five correlate, so the standard error is about 0.04.
  expect(share).toBeGreaterThan(0.08);
  expect(share).toBeLessThan(0.4);
  const first = hot.indexOf(true);
  expect(hot.slice(first, first + 5)).toEqual([true, true, true, true, true]);
});

test("with correlation a sequence is more uneven than the whole", () => {
  const o = { ...base, zipf: 1, correlation: 0.9, sequence: 1000 };
  const ids = routingTrace(o).choices(0);
  const whole = imbalance(tokensPerExpert(ids, 64));
  const single = imbalance(tokensPerExpert(ids.subarray(0, 4000), 64));
  const plain = imbalance(counts({ ...base, zipf: 1 }, 0));
  expect(single).toBeGreaterThan(1.5 * whole);
  expect(whole).toBeLessThan(plain);
});

test("traces that are none are refused", () => {
  expect(() => routingTrace({ ...base, topK: 65 })).toThrow("topK is 65");
  expect(() => routingTrace({ ...base, correlation: 2 })).toThrow(
    "correlation is 2; it must be in [0, 1]",
  );
  expect(() => routingTrace({ ...base, zipf: -1 })).toThrow("zipf is -1");
});

test("equal loads of any number stay within the bounds of every measure", () => {
  for (let n = 1; n < 200; n++) {
    for (const load of [0.1, 1 / 3, 0.7]) {
      const s = loadStatistics(Array<number>(n).fill(load));
      expect([s.imbalance >= 1, s.gini >= 0, s.entropy <= 1]).toEqual([true, true, true]);
    }
  }
});

test("popularity is a distribution however far it wanders, and where nothing is popular", () => {
  const sumOf = (p: Float64Array): number => p.reduce((a, b) => a + b, 0);
  const wild = routingTrace({ experts: 4, topK: 2, tokens: 8, seed: 1, drift: 1e4 });
  expect(sumOf(wild.popularity(3))).toBeCloseTo(1, 12);
  for (const ids of rows(wild.choices(3), 2)) expect(new Set(ids).size).toBe(2);
  const dead = routingTrace({ experts: 1, topK: 1, tokens: 2, seed: 1, burst: 1, burstFactor: 0 });
  expect([...dead.popularity(0)]).toEqual([1]);
});
