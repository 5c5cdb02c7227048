import fc from "fast-check";
import { expect, test } from "vitest";
import {
  combineRows,
  combineRowsGradient,
  dispatchRows,
  dispatchRowsGradient,
  dropTokens,
  localGather,
  localScatter,
  planDispatch,
  planUnique,
  combineUnique,
  dispatchUnique,
  tokenLayout,
} from "@trireme/moe-dispatch";
import { differences, dot, farthest, normals, randomIds } from "./naive.ts";

const sizes = fc.record({
  ranks: fc.constantFrom(1, 2, 3, 4, 8),
  local: fc.integer({ min: 1, max: 3 }),
  tokens: fc.integer({ min: 0, max: 60 }),
  k: fc.integer({ min: 1, max: 8 }),
  policy: fc.constantFrom("probability" as const, "position" as const),
  layout: fc.constantFrom({}, { align: 16 }, { capacity: 60 }),
  seed: fc.integer(),
});
const hidden = 4;

test("combine of dispatch with weights 1/k gives the tokens back, whatever moves nothing away", () => {
  fc.assert(
    fc.property(sizes, ({ ranks, local, tokens, k, policy, layout, seed }) => {
      const experts = ranks * local;
      const topK = Math.min(k, experts);
      const weights = new Float64Array(tokens * topK).fill(1 / topK);
      const routing = {
        tokens,
        experts,
        topK,
        expertIds: randomIds({ tokens, topK, experts, seed }),
        weights,
      };
      const kept = dropTokens(routing, { capacity: tokens, policy });
      expect(kept.dropped).toBe(0);
      const plan = planDispatch({ ...kept, ranks, ...layout });
      const x = normals(tokens * hidden, seed);
      const there = dispatchRows(plan, x, hidden);
      // k roundings of a sum of k equal terms.
      expect(farthest(combineRows(plan, there, hidden, weights), x)).toBeLessThan(1e-14);
      // And its gradient is the gradient of the identity.
      const g = combineRowsGradient(plan, x, there, hidden, weights);
      expect(farthest(dispatchRowsGradient(plan, g.rows, hidden), x)).toBeLessThan(1e-14);
    }),
  );
});

test("padding to capacity and no padding give the same result and gradient when nothing is dropped", () => {
  const [tokens, topK, experts, ranks] = [24, 2, 6, 3];
  const expertIds = randomIds({ tokens, topK, experts, seed: 1, holes: true });
  const weights = normals(tokens * topK, 2);
  const x = normals(tokens * hidden, 3);
  const [tight, padded] = [{}, { capacity: 8, align: 32 }].map((o) => {
    const plan = planDispatch({ expertIds, topK, experts, ranks, ...o });
    const rows = dispatchRows(plan, x, hidden);
    const g = combineRowsGradient(plan, x, rows, hidden, weights);
    return [
      combineRows(plan, rows, hidden, weights),
      dispatchRowsGradient(plan, g.rows, hidden),
      g.weights,
    ];
  });
  tight!.forEach((a, i) => expect(padded![i]).toEqual(a));
});

test("gradients through dispatch, experts and combine equal finite differences", () => {
  const [tokens, topK, experts, ranks] = [6, 2, 4, 2];
  // Expert 3 and one rank's tokens have nothing: their part is 0, and nothing breaks.
  const expertIds = Int32Array.of(0, 1, -1, -1, 2, 0, 1, 2, 0, -1, 2, 1);
  const plan = planDispatch({ expertIds, topK, experts, ranks, tokensPerRank: [0, 6], align: 4 });
  const x = normals(tokens * hidden, 4);
  const weights = normals(tokens * topK, 5);
  const pull = normals(tokens * hidden, 6);
  // Experts square their rows, so that the rows' gradient is not constant.
  const loss = (tokensIn: Float64Array, w: Float64Array): number =>
    dot(
      combineRows(
        plan,
        dispatchRows(plan, tokensIn, hidden).map((v) => v * v),
        hidden,
        w,
      ),
      pull,
    );
  const rows = dispatchRows(plan, x, hidden);
  const g = combineRowsGradient(
    plan,
    pull,
    rows.map((v) => v * v),
    hidden,
    weights,
  );
  const dx = dispatchRowsGradient(
    plan,
    g.rows.map((v, i) => 2 * rows[i]! * v),
    hidden,
  );
  // Central differences of a quadratic are exact but for rounding, 10⁻¹⁶/10⁻⁶.
  expect(
    farthest(
      dx,
      differences(x, (v) => loss(v, weights)),
    ),
  ).toBeLessThan(1e-8);
  expect(
    farthest(
      g.weights,
      differences(weights, (v) => loss(x, v)),
    ),
  ).toBeLessThan(1e-8);
});

test("all-gather, local scatter, local gather and reduce-scatter give the same as all-to-all", () => {
  fc.assert(
    fc.property(sizes, ({ ranks, local, tokens, k, layout, seed }) => {
      const experts = ranks * local;
      const topK = Math.min(k, experts);
      const expertIds = randomIds({ tokens, topK, experts, seed, holes: true });
      const plan = planDispatch({ expertIds, topK, experts, ranks, ...layout });
      const x = normals(tokens * hidden, seed);
      const weights = normals(tokens * topK, seed + 1);
      const rows = dispatchRows(plan, x, hidden);
      const sum = new Float64Array(tokens * hidden);
      let at = 0;
      for (let r = 0; r < ranks; r++) {
        const mine = localScatter(plan, r, x, hidden);
        expect(mine).toEqual(rows.slice(at, at + mine.length));
        at += mine.length;
        localGather(plan, r, mine, hidden, weights).forEach((v, i) => (sum[i]! += v));
      }
      expect(at).toBe(rows.length);
      // The ranks' sums are added in another order than the slots.
      expect(farthest(sum, combineRows(plan, rows, hidden, weights))).toBeLessThan(1e-13);
    }),
  );
});

test("unique tokens: the combined sum over the ranks a token is on gives the token back", () => {
  fc.assert(
    fc.property(sizes, ({ ranks, local, tokens, k, seed }) => {
      const experts = ranks * local;
      const topK = Math.min(k, experts);
      const expertIds = randomIds({ tokens, topK, experts, seed, holes: true });
      const o = { expertIds, topK, experts, ranks };
      const plan = planUnique(o);
      const { inRank } = tokenLayout(o);
      const x = normals(tokens * hidden, seed);
      const out = combineUnique(plan, dispatchUnique(plan, x, hidden), hidden);
      for (let t = 0; t < tokens; t++) {
        const on = inRank.subarray(t * ranks, (t + 1) * ranks).reduce((a, b) => a + b, 0);
        for (let c = 0; c < hidden; c++)
          expect(out[t * hidden + c]).toBeCloseTo(on * x[t * hidden + c]!, 12);
      }
    }),
  );
});
