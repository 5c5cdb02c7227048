import { createRng } from "@trireme/core";
import fc from "fast-check";
import { expect, test } from "vitest";
import { contextPieces } from "../src/layout/context-pieces.ts";
import { capacityGroups } from "../src/experts/capacity-groups.ts";
import type { ResolvedRouter } from "@trireme/run";
import { Router } from "../src/experts/router.ts";

const [tokens, count, active] = [6, 5, 2];
const experts = {
  count,
  active,
  ffn: 8,
  sharedFfn: 0,
  sharedGate: false,
  denseLayers: 0,
  every: 1,
  routerBias: false,
  selectionBias: false,
};
const rng = createRng(3);
const random = (length: number): Float32Array =>
  Float32Array.from({ length }, () => rng.normal() * 2);

/** A router's options, and a capacity. */
interface Tested extends ResolvedRouter {
  readonly balanceLoss: number;
  readonly capacity?: number;
}

/** Sum of exp, and its logarithm, of a row of logits. */
function logSumExp(row: ArrayLike<number>): number {
  return Math.log(Array.from(row).reduce((sum, x) => sum + Math.exp(x), 0));
}

test.each([
  ["the weights alone", { balanceLoss: 0 }],
  ["the z-loss", { balanceLoss: 0, zLoss: 0.3 }],
  ["the balance loss", { balanceLoss: 0.4 }],
  ["both losses, of sigmoid scores", { balanceLoss: 0.4, zLoss: 0.3, scoring: "sigmoid" }],
  ["weights after a drop", { balanceLoss: 0, capacity: 0.7 }],
  [
    "sigmoid weights after a drop",
    { balanceLoss: 0, capacity: 0.7, scoring: "sigmoid", scale: 2.5 },
  ],
  ["weights within groups", { balanceLoss: 0, scoring: "sigmoid", groups: { groups: 5, keep: 3 } }],
] as const)("the gradient of logits is the difference quotient of %s", (_, options) => {
  const { balanceLoss, zLoss = 0, capacity: factor }: Tested = options;
  const batchTokens = 4 * tokens;
  const load = Float32Array.of(9, 3, 7, 1, 28);
  const capacity = factor === undefined ? undefined : { factor, groups: new Int32Array(tokens) };
  const router = new Router(experts, options, { load, bias: undefined }, capacity, batchTokens);
  const logits = random(tokens * count);
  const factors = random(tokens * active);
  const sigmoid = "scoring" in options;
  /** Σ weights · factors, and the losses by their formulas (Switch, eq. 4; ST-MoE, eq. 5). */
  const objective = (): number => {
    let sum = 0;
    router.route(logits).kept.weights.forEach((w, slot) => (sum += w * factors[slot]!));
    for (let t = 0; t < tokens; t++) {
      const row = Array.from(logits.subarray(t * count, (t + 1) * count));
      const total = logSumExp(row);
      sum += (zLoss * total ** 2) / batchTokens;
      const scores = row.map((x) => (sigmoid ? 1 / (1 + Math.exp(-x)) : Math.exp(x - total)));
      const all = scores.reduce((a, b) => a + b, 0);
      scores.forEach((score, e) => {
        const share = load[e]! / (batchTokens * active);
        sum += (balanceLoss * count * share * (score / all)) / batchTokens;
      });
    }
    return sum;
  };
  const { kept } = router.route(logits);
  expect(kept.expertIds.includes(-1)).toBe(capacity !== undefined);
  const taken = router.gradient(logits, router.route(logits), factors);
  const largest = taken.reduce((a, b) => Math.max(a, Math.abs(b)), 0);
  for (let i = 0; i < logits.length; i++) {
    const x = logits[i]!;
    const at = (step: number): number => {
      logits[i] = x + step;
      return objective();
    };
    // Weights are float32: a quotient over 2^-6 is off by 2^-24 / 2^-6, and by its third order.
    const quotient = (at(2 ** -7) - at(-(2 ** -7))) * 2 ** 6;
    logits[i] = x;
    expect(Math.abs(quotient - taken[i]!)).toBeLessThan(2e-3 * largest);
  }
});

test("after a step the selection bias moves towards experts with few tokens", () => {
  const [load, bias] = [new Float32Array(count), new Float32Array(count)];
  const options: ResolvedRouter = { biasRate: 0.25 };
  const router = new Router(
    { ...experts, selectionBias: true },
    options,
    { load, bias },
    undefined,
    8,
  );
  router.endStep(Int32Array.of(9, 0, 4, 3, 4));
  expect([...load]).toEqual([9, 0, 4, 3, 4]);
  expect([...bias]).toEqual([-0.25, 0.25, 0, 0.25, 0]);
});

test("a capacity drops from each part of a microbatch by itself", () => {
  // All tokens choose expert 4, then 3; half of an even share of 3 tokens' choices is one of each.
  const logits = Float32Array.from({ length: tokens * count }, (_, i) => i % count);
  const state = { load: new Float32Array(count), bias: undefined };
  const keeps = (groups: Int32Array): number[] => {
    const router = new Router(experts, {}, state, { factor: 0.5, groups }, tokens);
    const { kept, chosen } = router.route(logits);
    expect([...chosen.expertIds]).toEqual([4, 3, 4, 3, 4, 3, 4, 3, 4, 3, 4, 3]);
    return Array.from(kept.expertIds.filter((_, slot) => slot % active === 0));
  };
  expect(keeps(Int32Array.of(0, 0, 0, 0, 0, 0))).toEqual([4, 4, -1, -1, -1, -1]);
  expect(keeps(Int32Array.of(7, 9, 7, 9, 9, 7))).toEqual([4, 4, -1, -1, -1, -1]);
  expect(keeps(Int32Array.of(0, 0, 0, 1, 1, 1))).toEqual([4, -1, -1, 4, -1, -1]);
});

test("experts of a device share a capacity, and may keep what weighs most", () => {
  // All tokens choose experts 1 and 0, of the first of two devices, which keeps half of its 12 / 2 rows.
  const four = { ...experts, count: 4 };
  const logits = Float32Array.from({ length: 6 * 4 }, (_, i) => [1, 2 + i / 24, -9, -9][i % 4]!);
  const state = { load: new Float32Array(4), bias: undefined };
  const kept = (options: ResolvedRouter): number[] => {
    const capacity = { factor: 0.5, groups: new Int32Array(6) };
    const { expertIds } = new Router(four, options, state, capacity, 6).route(logits).kept;
    return Array.from(
      { length: 6 },
      (_, t) => [0, 1].filter((j) => expertIds[t * 2 + j] !== -1).length,
    );
  };
  expect(kept({ capacityGroups: 2 })).toEqual([2, 1, 0, 0, 0, 0]);
  expect(kept({ capacityGroups: 2, dropPolicy: "probability" })).toEqual([0, 0, 0, 1, 1, 1]);
});

test("the parts of one rank are what ranks of a split plan hold, row by row", () => {
  fc.assert(
    fc.property(
      fc.constantFrom(1, 2, 3),
      fc.constantFrom(1, 2, 4),
      fc.constantFrom(1, 2, 3),
      fc.constantFrom("ring", "all-to-all"),
      (microbatch, cp, tp, contextExchange) => {
        const sequence = 48;
        const plan = { microbatch, sequence, contextExchange, sequenceParallel: true } as const;
        const alone = { rank: 0, ranks: 1 };
        const whole = contextPieces(sequence, 0, 1, contextExchange);
        const one = { plan: { ...plan, cp: 1, tp: 1 }, pieces: whole, tensor: alone };
        const parts = capacityGroups(one, { cp, tp });
        for (let c = 0; c < cp; c++) {
          const pieces = contextPieces(sequence, c, cp, contextExchange);
          // The rows of this context-parallel rank, as rows of the whole microbatch.
          const rows = Array.from({ length: microbatch }, (_, sample) =>
            pieces.flatMap(({ start, count: n }) =>
              Array.from({ length: n }, (_unused, i) => sample * sequence + start + i),
            ),
          ).flat();
          for (let rank = 0; rank < tp; rank++) {
            const tensor = { rank, ranks: tp };
            const own = capacityGroups({ plan: { ...plan, cp, tp }, pieces, tensor }, {});
            expect(new Set(own).size).toBe(1);
            const here = rows.slice((rank * rows.length) / tp, ((rank + 1) * rows.length) / tp);
            expect(here.map((row) => parts[row])).toEqual(Array.from(own));
            // Nobody else has any of it.
            expect(parts.filter((part) => part === own[0])).toHaveLength(here.length);
          }
        }
      },
    ),
  );
});

test("parts that lie on several ranks are refused", () => {
  const contextExchange = "ring";
  const sizes = { microbatch: 1, sequence: 16, cp: 2, tp: 1 };
  const plan = { ...sizes, contextExchange, sequenceParallel: false } as const;
  const pieces = contextPieces(16, 0, 2, contextExchange);
  const origin = { plan, pieces, tensor: { rank: 0, ranks: 1 } };
  expect(() => capacityGroups(origin, { cp: 1 })).toThrow(
    "capacityParts of microbatch 1, cp 1, tp 1 lie on several ranks of microbatch 1, cp 2, tp 1; use",
  );
  expect(() => capacityGroups(origin, { cp: 3 })).toThrow("do not divide the 16 tokens");
  expect(() => capacityGroups(origin, { microbatch: 2 })).toThrow("do not divide");
  expect(() => capacityGroups(origin, { tp: 0 })).toThrow("tp 0 do not divide");
});
