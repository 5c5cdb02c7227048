import fc from "fast-check";
import { expect, test } from "vitest";
import {
  combineRows,
  combineUnique,
  dispatchRows,
  dispatchUnique,
  planDispatch,
  planExpand,
  planUnique,
  receivedRouting,
  tokenLayout,
} from "@trireme/moe-dispatch";
import { farthest, normals, randomIds, rows } from "./naive.ts";

const published = {
  expertIds: Int32Array.of(0, 1, 2, 5, 4, 5, 7, -1, -1, -1, 3, 6),
  topK: 2,
  experts: 8,
  ranks: 4,
  ranksPerHost: 2,
};

test("the layout gives the published vector", () => {
  const layout = tokenLayout(published);
  expect([...layout.perRank]).toEqual([1, 2, 2, 2]);
  expect([...layout.perExpert]).toEqual([1, 1, 1, 1, 1, 2, 1, 1]);
  expect([...layout.perHost]).toEqual([3, 4]);
  expect(rows(layout.inRank, 4)).toEqual([
    [1, 0, 0, 0],
    [0, 1, 1, 0],
    [0, 0, 1, 0],
    [0, 0, 0, 1],
    [0, 0, 0, 0],
    [0, 1, 0, 1],
  ]);
});

test("received rows are in order of source rank and token, with local ids and weights", () => {
  const plan = planUnique({ ...published, tokensPerRank: [1, 1, 2, 2] });
  const weights = Float64Array.from({ length: 12 }, (_, i) => i + 1);
  const routing = { ...published, tokens: 6, weights };
  expect(rows(plan.splits, 4)).toEqual([
    [1, 0, 0, 0],
    [0, 1, 1, 0],
    [0, 0, 1, 1],
    [0, 1, 0, 1],
  ]);
  const received = receivedRouting(plan, 2, routing);
  expect(
    Array.from(plan.receiveTokens.subarray(plan.receiveStarts[2], plan.receiveStarts[3])),
  ).toEqual([1, 2]);
  expect(rows(received.expertIds, 2)).toEqual([
    [-1, 1],
    [0, 1],
  ]);
  expect(rows(received.weights, 2)).toEqual([
    [0, 4],
    [5, 6],
  ]);
  const worst = receivedRouting(plan, 2, routing, 4);
  expect(rows(worst.expertIds, 2)).toEqual([
    [-1, 1],
    [0, 1],
    [-1, -1],
    [-1, -1],
  ]);
  expect(() => receivedRouting(plan, 2, routing, 1)).toThrow(
    "rows is 1; it must be an integer from 2",
  );
});

test("by hosts a token goes once to each host, and from there to the same ranks", () => {
  fc.assert(
    fc.property(
      fc.constantFrom([4, 2], [6, 3], [8, 2], [4, 4], [3, 1]),
      fc.integer({ min: 0, max: 50 }),
      fc.integer(),
      (shape, tokens, seed) => {
        const [ranks, ranksPerHost] = shape as [number, number];
        const experts = ranks * 2;
        const expertIds = randomIds({ tokens, topK: 3, experts, seed, holes: true });
        const o = { expertIds, topK: 3, experts, ranks, ranksPerHost };
        const plan = planUnique(o);
        const layout = tokenLayout(o);
        const column = (splits: Int32Array, to: number): number =>
          rows(splits, ranks).reduce((sum, row) => sum + row[to]!, 0);
        for (let to = 0; to < ranks; to++) {
          expect(column(plan.splits, to)).toBe(layout.perRank[to]);
          expect(column(plan.forwardSplits, to)).toBe(layout.perRank[to]);
        }
        for (let host = 0; host < ranks / ranksPerHost; host++) {
          const first = host * ranksPerHost;
          const onHost = Array.from({ length: ranksPerHost }, (_, i) =>
            column(plan.hostSplits, first + i),
          );
          expect(onHost.reduce((a, b) => a + b, 0)).toBe(layout.perHost[host]);
        }
        // The first step stays on the sender's rail, the second within a host.
        plan.hostSplits.forEach((n, i) => {
          if (n > 0) expect(Math.floor(i / ranks) % ranksPerHost).toBe((i % ranks) % ranksPerHost);
        });
        plan.forwardSplits.forEach((n, i) => {
          if (n > 0)
            expect(Math.floor(Math.floor(i / ranks) / ranksPerHost)).toBe(
              Math.floor((i % ranks) / ranksPerHost),
            );
        });
      },
    ),
  );
});

test("unique rows, expanded, weighted, and summed give the plain dispatch's result", () => {
  const [tokens, topK, experts, ranks, hidden] = [600, 4, 16, 4, 3];
  // Most tokens want the first experts: an imbalance far past 512 rows on a rank.
  const expertIds = randomIds({ tokens, topK, experts: 6, seed: 1, holes: true });
  const weights = normals(tokens * topK, 2).map((w, i) => (expertIds[i] === -1 ? 0 : w));
  const routing = { tokens, topK, experts, expertIds, weights };
  const x = normals(tokens * hidden, 3);
  const plain = planDispatch({ ...routing, ranks });
  const expected = combineRows(plain, dispatchRows(plain, x, hidden), hidden, weights);
  const plan = planUnique({ ...routing, ranks });
  expect(plan.receiveTokens.length).toBeLessThan(plain.filled);
  const received = dispatchUnique(plan, x, hidden);
  const partial = new Float64Array(received.length);
  for (let r = 0; r < ranks; r++) {
    const local = receivedRouting(plan, r, routing);
    const expand = planExpand(local, { align: 16 });
    const [start, end] = [plan.receiveStarts[r]! * hidden, plan.receiveStarts[r + 1]! * hidden];
    const inputs = dispatchRows(expand, received.slice(start, end), hidden);
    partial.set(combineRows(expand, inputs, hidden, local.weights), start);
  }
  expect(farthest(combineUnique(plan, partial, hidden), expected)).toBeLessThan(1e-13);
});
