import { expect, test } from "vitest";
import {
  allGatherRows,
  chooseDispatch,
  exchangeVolume,
  planDispatch,
  planHeadExchange,
  planUnique,
  reduceScatterRows,
  route,
} from "@trireme/moe-dispatch";
import { normals } from "./naive.ts";

// MegaScale-MoE §4: volumes that a rank sends per layer, in numbers (b·s tokens of width h).
const [n, tokens, hidden] = [8, 16_384, 4096];
const tensorParallel = (2 * tokens * hidden * (n - 1)) / n;

test("expert parallelism sends (2k/n)·bsh·(n-1)/n, within 1 % on real routings", () => {
  for (const topK of [1, 2, 3, 6, 8]) {
    const experts = 32;
    const logits = normals(tokens * experts, topK);
    const { expertIds } = route(logits, { experts, topK, scoring: "softmax-after" });
    const plan = planDispatch({ expertIds, topK, experts, ranks: n });
    const { sent, received } = exchangeVolume(plan.splits, n);
    const bothWays =
      ((sent.reduce((a, b) => a + b) + received.reduce((a, b) => a + b)) / n) * hidden;
    const published = ((2 * topK) / n) * ((tokens * hidden * (n - 1)) / n);
    expect(Math.abs(bothWays / published - 1)).toBeLessThan(0.01);
    // Sampling 1/8 of 16,384·k rows has a standard error of 0.26 % / √k: 1 % is four of them.
    expect(Math.abs(bothWays / tensorParallel - topK / n) / (topK / n)).toBeLessThan(0.01);
  }
});

test("all-gather and reduce-scatter send what tensor parallelism does, whatever k", () => {
  const plan = planDispatch({ expertIds: new Int32Array(tokens), topK: 1, experts: 32, ranks: n });
  const sent = allGatherRows(plan).map((rows, r) => (rows + reduceScatterRows(plan)[r]!) * hidden);
  expect([...sent]).toEqual(Array(n).fill(tensorParallel));
});

// The published 2·bsh·(n − 1)/n · (2 + 2/m)/n is what a rank sends and receives together, while
// tensor parallelism's 2·bsh·(n − 1)/n is what it sends: sent alone, the ratio would be half.
test("sequence-parallel attention has the published volume: 0.3125 at n = 8, m = 4", () => {
  for (const [kvHeads, m] of [
    [8, 4],
    [32, 1],
  ] as const) {
    const plan = planHeadExchange({ tokens, heads: 32, kvHeads, headDim: hidden / 32, ranks: n });
    const [before, after] = [exchangeVolume(plan.before, n), exchangeVolume(plan.after, n)];
    for (let r = 0; r < n; r++) {
      const sent = before.sent[r]! + after.sent[r]!;
      const received = before.received[r]! + after.received[r]!;
      expect(sent).toBe((tokens / n) * hidden * (2 + 2 / m) * ((n - 1) / n));
      expect((sent + received) / tensorParallel).toBe((2 + 2 / m) / n);
      if (m === 4) expect((sent + received) / tensorParallel).toBe(0.3125);
    }
  }
});

test("heads and tokens that do not divide, and shared key/value heads, all arrive", () => {
  const o = { tokens: 101, heads: 10, kvHeads: 2, headDim: 3, ranks: 4 };
  const { before, after } = planHeadExchange(o);
  // Queries and results: every head of every token once. Keys and values: heads 0-4 and 5-9 share
  // one; ranks hold heads 0-1, 2-4, 5-6, 7-9, so each needs one.
  expect(after.reduce((a, b) => a + b)).toBe(101 * 10 * 3);
  expect(before.reduce((a, b) => a + b)).toBe(101 * 3 * (10 + 2 * 4));
  expect(() => planHeadExchange({ ...o, kvHeads: 3 })).toThrow("nearest number that does is 9");
});

test("the choice of dispatch crosses where measured, k > 6 at n = 8, and by volume at k > n", () => {
  const at = (topK: number, efficiency?: number) =>
    chooseDispatch({ topK, ranks: 8, ...(efficiency === undefined ? {} : { efficiency }) })
      .dispatch;
  expect([2, 6, 7, 8].map((k) => at(k))).toEqual([
    "all-to-all",
    "all-to-all",
    "all-gather",
    "all-gather",
  ]);
  expect([8, 9].map((k) => at(k, 1))).toEqual(["all-to-all", "all-gather"]);
  expect(chooseDispatch({ topK: 2, ranks: 1 }).dispatch).toBe("all-to-all");
});

test("unique tokens never travel more than rows, and hosts save what they share", () => {
  const [experts, topK, ranks] = [64, 8, 32];
  const { expertIds } = route(normals(2000 * experts, 9), {
    experts,
    topK,
    scoring: "softmax-after",
  });
  const plain = exchangeVolume(planDispatch({ expertIds, topK, experts, ranks }).splits, ranks, 8);
  const plan = planUnique({ expertIds, topK, experts, ranks, ranksPerHost: 8 });
  const unique = exchangeVolume(plan.splits, ranks, 8);
  const byHost = exchangeVolume(plan.hostSplits, ranks, 8);
  expect(unique.total).toBeLessThan(plain.total);
  // Expected: 8 draws over 4 hosts reach 3·(1 − C(48,8)/C(64,8)) = 2.74 of the 3 other hosts, against 6 rows.
  expect(byHost.betweenHosts / 2000).toBeCloseTo(2.74, 1);
  expect(plain.betweenHosts / 2000).toBeCloseTo(6, 1);
  expect(exchangeVolume(plan.forwardSplits, ranks, 8).betweenHosts).toBe(0);
});
