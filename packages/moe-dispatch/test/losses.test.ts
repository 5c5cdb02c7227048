import { expect, test } from "vitest";
import {
  balanceLoss,
  route,
  softmaxScores,
  tokensPerExpert,
  uniformRoute,
  zLoss,
} from "@trireme/moe-dispatch";
import { dot, farthest, normals } from "./naive.ts";

const abc = Float64Array.of(2, 1, 0, -1, 0.5, 0.4, 0.3, 0.2, -1, 3, 3, -2);
const abcRouting = route(abc, { experts: 4, topK: 2, scoring: "softmax-after" });

test("the auxiliary loss and the z-loss give the published vectors", () => {
  // The vectors come from a run in single precision: its relative epsilon is 1.2e-7.
  expect(balanceLoss(abc, abcRouting, { coefficient: 1 }).value).toBeCloseTo(1.2613655, 6);
  expect(zLoss(abc, { experts: 4, coefficient: 1 }).value).toBeCloseTo(7.5741321, 5);
});

test("balanced counts give the coefficient, over experts, groups, sequences and wholes", () => {
  const experts = 8;
  const routing = uniformRoute({ tokens: 16, experts, topK: 2 });
  const logits = normals(16 * experts, 1);
  const coefficient = 0.02;
  for (const o of [
    {},
    { deviceGroups: 4 },
    { sequenceEnds: Int32Array.of(4, 12, 16) },
    { scoring: "sigmoid" as const },
  ]) {
    // Rounding of sums of 128 terms.
    expect(balanceLoss(logits, routing, { coefficient, ...o }).value).toBeCloseTo(coefficient, 14);
  }
});

const experts = 6;
const tokens = 24;
const logits = normals(tokens * experts, 2);
const padding = Uint8Array.from({ length: tokens }, (_, t) => Number(t % 5 === 3));
const routing = route(logits, { experts, topK: 2, scoring: "softmax-after", padding });

/** Loss and gradient of the same batch computed in pieces that end at `cuts`. */
function inPieces(
  cuts: readonly number[],
  f: (from: number, to: number) => { value: number; gradient: ArrayLike<number> },
): {
  value: number;
  gradient: number[];
} {
  let value = 0;
  const gradient: number[] = [];
  let from = 0;
  for (const to of cuts) {
    const piece = f(from, to);
    value += piece.value;
    gradient.push(...Array.from(piece.gradient));
    from = to;
  }
  return { value, gradient };
}

test("losses do not depend on how the batch is cut over ranks and micro-batches", () => {
  const counts = tokensPerExpert(routing.expertIds, experts);
  const real = tokens - padding.reduce((sum, p) => sum + p, 0);
  const coefficient = 0.5;
  const slice = (from: number, to: number) => ({
    logits: logits.slice(from * experts, to * experts),
    padding: padding.slice(from, to),
    routing: {
      ...routing,
      tokens: to - from,
      expertIds: routing.expertIds.slice(from * 2, to * 2),
      weights: routing.weights.slice(from * 2, to * 2),
    },
  });
  const sequenceEnds = Int32Array.of(8, 16, 24);
  const [batch, sequences, z] = [
    balanceLoss(logits, routing, { coefficient, padding }),
    balanceLoss(logits, routing, { coefficient, padding, sequenceEnds }),
    zLoss(logits, { experts, coefficient, padding }),
  ];
  for (const cuts of [[24], [8, 24], [1, 4, 4, 24]]) {
    const global = inPieces(cuts, (from, to) => {
      const s = slice(from, to);
      return balanceLoss(s.logits, s.routing, {
        coefficient,
        padding: s.padding,
        whole: { tokens: real, counts },
      });
    });
    expect(global.value).toBeCloseTo(batch.value, 13);
    expect(farthest(global.gradient, batch.gradient)).toBeLessThan(1e-15);
    const zs = inPieces(cuts, (from, to) => {
      const s = slice(from, to);
      return zLoss(s.logits, { experts, coefficient, padding: s.padding, wholeTokens: real });
    });
    expect(zs.value).toBeCloseTo(z.value, 13);
    expect(farthest(zs.gradient, z.gradient)).toBeLessThan(1e-15);
  }
  const bySequence = inPieces([8, 16, 24], (from, to) => {
    const s = slice(from, to);
    const ends = Int32Array.of(to - from);
    return balanceLoss(s.logits, s.routing, {
      coefficient,
      padding: s.padding,
      sequenceEnds: ends,
      whole: { sequences: 3 },
    });
  });
  expect(bySequence.value).toBeCloseTo(sequences.value, 13);
  expect(farthest(bySequence.gradient, sequences.gradient)).toBeLessThan(1e-15);
});

test("padding tokens count in no loss", () => {
  const real = Array.from(padding.keys()).filter((t) => padding[t] === 0);
  const only = Float64Array.from(
    real.flatMap((t) => [...logits.subarray(t * experts, (t + 1) * experts)]),
  );
  const alone = route(only, { experts, topK: 2, scoring: "softmax-after" });
  const o = { coefficient: 0.1, deviceGroups: 3 };
  expect(balanceLoss(logits, routing, { ...o, padding }).value).toBeCloseTo(
    balanceLoss(only, alone, o).value,
    14,
  );
  const z = { experts, coefficient: 0.1 };
  expect(zLoss(logits, { ...z, padding }).value).toBeCloseTo(zLoss(only, z).value, 13);
  const scores = softmaxScores(logits, experts, padding);
  expect(dot(scores)).toBeCloseTo(real.length, 12);
});

test("no tokens, only padding, and masked rows give finite losses", () => {
  const empty = route(new Float64Array(0), { experts, topK: 2, scoring: "sigmoid" });
  expect(balanceLoss(new Float64Array(0), empty, { coefficient: 1 }).value).toBe(0);
  expect(zLoss(new Float64Array(0), { experts, coefficient: 1 }).value).toBe(0);
  const all = new Uint8Array(tokens).fill(1);
  expect(balanceLoss(logits, routing, { coefficient: 1, padding: all }).value).toBe(0);
  expect(zLoss(logits, { experts, coefficient: 1, padding: all }).value).toBe(0);
  const masked = new Float64Array(experts).fill(-Infinity);
  expect(zLoss(masked, { experts, coefficient: 1 }).value).toBe(0);
});

test("sequences that do not fit and wholes of the wrong kind are refused", () => {
  const o = { coefficient: 1 };
  expect(() =>
    balanceLoss(logits, routing, { ...o, sequenceEnds: Int32Array.of(8, 4, 24) }),
  ).toThrow("4 after 8");
  expect(() => balanceLoss(logits, routing, { ...o, sequenceEnds: Int32Array.of(8) })).toThrow(
    "must end at 24",
  );
  expect(() => balanceLoss(logits, routing, { ...o, whole: { sequences: 2 } })).toThrow(
    "takes whole: { tokens, counts }",
  );
  expect(() => balanceLoss(logits, routing, { ...o, deviceGroups: 4 })).toThrow(
    "nearest number that does is 8",
  );
  expect(() => balanceLoss(logits, routing, { coefficient: -1 })).toThrow("coefficient is -1");
});
