import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type Routing,
  type Scoring,
  balanceLoss,
  route,
  routeGradient,
  tokensPerExpert,
  updateSelectionBias,
} from "@trireme/moe-dispatch";
import { farthest, naiveTopK, normals, rows } from "./naive.ts";

// The published vectors have six decimals.
const printed = 5e-7;
const abc = Float64Array.of(2, 1, 0, -1, 0.5, 0.4, 0.3, 0.2, -1, 3, 3, -2);
const two = { experts: 4, topK: 2 } as const;

function expectRouting(r: Routing, ids: number[][], weights: number[][]): void {
  expect(rows(r.expertIds, r.topK)).toEqual(ids);
  expect(farthest(r.weights, weights.flat())).toBeLessThan(printed);
}

test("softmax over the chosen, over all, and biased sigmoids give the published vectors", () => {
  const ids = [
    [0, 1],
    [0, 1],
    [1, 2],
  ];
  expectRouting(route(abc, { ...two, scoring: "softmax-after" }), ids, [
    [0.731059, 0.268941],
    [0.524979, 0.475021],
    [0.5, 0.5],
  ]);
  expectRouting(route(abc, { ...two, scoring: "softmax-before" }), ids, [
    [0.643914, 0.236883],
    [0.288651, 0.261183],
    [0.493814, 0.493814],
  ]);
  const bias = Float64Array.of(0, -0.5, 0, 0.6);
  const sigmoid = route(abc, { ...two, scoring: "sigmoid", bias });
  expectRouting(
    sigmoid,
    [
      [0, 3],
      [3, 0],
      [2, 3],
    ],
    [
      [0.766085, 0.233915],
      [0.469024, 0.530976],
      [0.88878, 0.11122],
    ],
  );
});

test("counts and the bias update give the published vectors", () => {
  const r = route(abc, { ...two, scoring: "softmax-after" });
  const counts = tokensPerExpert(r.expertIds, 4);
  expect([...counts]).toEqual([2, 3, 1, 0]);
  const bias = new Float64Array(4);
  updateSelectionBias(bias, counts, 0.001);
  expect([...bias]).toEqual([-0.001, -0.001, 0.001, 0.001]);
});

test("groups are masked with minus infinity, also when scores are negative", () => {
  const scores = Float64Array.of(0.9, 0.1, 0.8, 0.7, 0.2, 0.3, 0.6, 0.5);
  const o = {
    experts: 8,
    topK: 4,
    scoring: "softmax-after",
    groups: { groups: 4, keep: 2 },
  } as const;
  expect([...route(scores, o).expertIds]).toEqual([2, 3, 6, 7]);
  const negative = scores.map((s) => s - 1);
  expect([...route(negative, o).expertIds]).toEqual([2, 3, 6, 7]);
});

test("with node limits a token reaches no more groups than are kept", () => {
  const logits = normals(50 * 32, 3);
  const bias = normals(32, 4).map((b) => b - 2); // negative scores throughout
  const r = route(logits, {
    experts: 32,
    topK: 6,
    scoring: "sigmoid",
    bias,
    groups: { groups: 8, keep: 3, best: 2 },
  });
  for (const ids of rows(r.expertIds, 6)) {
    expect(new Set(ids.map((e) => Math.floor(e / 4))).size).toBeLessThanOrEqual(3);
    expect(new Set(ids).size).toBe(6);
  }
});

test("a selection bias does not reach the weights", () => {
  const logits = normals(20 * 8, 5);
  const bias = new Float64Array(8).fill(0.7);
  const o = { experts: 8, topK: 3, scoring: "sigmoid" } as const;
  // A bias equal on all experts changes no choice, and so nothing at all.
  expect(route(logits, { ...o, bias }).expertIds).toEqual(route(logits, o).expertIds);
  expect(farthest(route(logits, { ...o, bias }).weights, route(logits, o).weights)).toBe(0);
});

test("every number of tokens from 0 to 130 routes as the naive reference", () => {
  const experts = 11;
  for (let tokens = 0; tokens <= 130; tokens++) {
    const logits = normals(tokens * experts, tokens).map((x) => Math.round(x * 3) / 3); // many ties
    const r = route(logits, { experts, topK: 4, scoring: "softmax-after" });
    const chosen = rows(logits, experts).map((row) => naiveTopK(row, 4));
    expect(rows(r.expertIds, 4)).toEqual(chosen);
    for (let t = 0; t < tokens; t++) {
      const e = chosen[t]!.map((x) => Math.exp(logits[t * experts + x]!));
      const sum = e.reduce((a, b) => a + b, 0);
      const weights = r.weights.subarray(t * 4, t * 4 + 4);
      expect(
        farthest(
          weights,
          e.map((x) => x / sum),
        ),
      ).toBeLessThan(1e-14); // rounding of a few operations
    }
  }
});

test("choices are right for any sizes, biases, masks and scorings", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 17 }),
      fc.integer({ min: 1, max: 17 }),
      fc.constantFrom<Scoring>("softmax-before", "sigmoid"),
      fc.integer(),
      (experts, k, scoring, seed) => {
        const topK = Math.min(experts, k);
        const logits = normals(9 * experts, seed).map((x) =>
          x > 1.2 ? -Infinity : Math.round(x * 4) / 4,
        );
        const bias = normals(experts, seed + 1).map((x) => Math.round(x * 8) / 8);
        const r = route(logits, { experts, topK, scoring, bias });
        rows(logits, experts).forEach((row, t) => {
          const largest = Math.max(...row);
          const total = row.reduce((sum, l) => sum + Math.exp(l - largest), 0);
          const scores = row.map((l, e) => {
            if (l === -Infinity) return l;
            const s =
              scoring === "sigmoid" ? 1 / (1 + Math.exp(-l)) : Math.exp(l - largest) / total;
            return s + bias[e]!;
          });
          const ids = [...r.expertIds.subarray(t * topK, (t + 1) * topK)].filter((e) => e !== -1);
          const best = naiveTopK(scores, topK);
          expect(ids.length).toBe(best.length);
          ids.forEach((e, j) =>
            expect(Math.abs(scores[e]! - scores[best[j]!]!)).toBeLessThan(1e-14),
          );
        });
      },
    ),
  );
});

test("weights come in the precision of the logits, times the scale", () => {
  const single = route(Float32Array.from(abc), { ...two, scoring: "softmax-after", scale: 2.5 });
  expect(single.weights).toBeInstanceOf(Float32Array);
  expect(single.weights[0]! + single.weights[1]!).toBeCloseTo(2.5, 6);
  const normalized = route(abc, { ...two, scoring: "softmax-before", normalize: true });
  expect(
    farthest(normalized.weights, route(abc, { ...two, scoring: "softmax-after" }).weights),
  ).toBeLessThan(1e-15);
});

test("padding tokens and tokens whose experts are all masked get no expert", () => {
  const logits = abc.slice();
  logits.fill(-Infinity, 4, 8);
  for (const scoring of ["softmax-after", "softmax-before", "sigmoid"] as const) {
    const r = route(logits, { ...two, scoring, padding: Uint8Array.of(1, 0, 0) });
    expect([...r.expertIds]).toEqual([-1, -1, -1, -1, 1, 2]);
    expect([...r.weights.subarray(0, 4)]).toEqual([0, 0, 0, 0]);
  }
});

test("replayed choices keep their experts and take their weights from the logits of now", () => {
  const first = route(abc, { ...two, scoring: "softmax-after" });
  const moved = abc.map((x) => -x);
  const again = route(moved, { ...two, scoring: "softmax-after", replay: first.expertIds });
  expect(again.expertIds).toEqual(first.expertIds);
  expect(again.weights[0]).toBeCloseTo(1 / (1 + Math.E), 12);
});

test("what cannot be routed is refused with the numbers and the rule", () => {
  const o = { ...two, scoring: "sigmoid" } as const;
  const bad = abc.slice();
  bad[6] = Number.NaN;
  const bias = new Float64Array(4);
  expect(() => route(bad, o)).toThrow("token 1 has logit NaN at expert 2");
  expect(() => route(bad, { ...o, bias })).toThrow("token 1 has logit NaN at expert 2");
  bad[6] = Infinity;
  expect(() => route(bad, { ...o, scoring: "softmax-before" })).toThrow("logit Infinity");
  expect(() => route(abc, { ...o, topK: 5 })).toThrow(
    "topK is 5; it must be an integer from 1 to 4",
  );
  expect(() => route(abc, { ...o, experts: 5 })).toThrow("12 numbers");
  expect(() => route(abc, { ...o, scoring: "softmax-after", bias })).toThrow('use "sigmoid"');
  expect(() => route(abc, { ...o, groups: { groups: 4, keep: 1 } })).toThrow("keep at least 2");
  expect(() => route(abc, { ...o, groups: { groups: 3, keep: 2 } })).toThrow(
    "nearest number that does is 3",
  );
  expect(() => route(abc, { ...o, replay: new Int32Array(6).fill(4) })).toThrow("expert 4");
  expect(() => route(abc, { ...o, padding: new Uint8Array(2) })).toThrow("padding holds 2");
});

test("a bias, or a logit of a replayed choice, that is not finite is named", () => {
  const bias = Float64Array.of(0, NaN, 0, 0);
  const groups = { groups: 2, keep: 1 };
  for (const more of [{}, { groups }]) {
    expect(() => route(abc, { ...two, scoring: "sigmoid", bias, ...more })).toThrow(
      "bias of expert 1 is NaN; it must be finite",
    );
  }
  for (const odd of [NaN, Infinity]) {
    for (const scoring of ["softmax-after", "softmax-before", "sigmoid"] as const) {
      const logits = Float64Array.of(odd, 1);
      const replay = Int32Array.of(0);
      expect(() =>
        route(logits, { experts: 2, topK: 1, scoring, normalize: false, replay }),
      ).toThrow(`token 0 has logit ${odd} at expert 0`);
    }
  }
});

test("a bias is not moved by counts that are none", () => {
  const bias = Float64Array.of(1, 2);
  expect(() => updateSelectionBias(bias, [1, NaN], 0.1)).toThrow("count of expert 1 is NaN");
  expect([...bias]).toEqual([1, 2]);
});

test("a gradient or loss of choices that name no expert is refused, not lost", () => {
  const routing = {
    tokens: 2,
    experts: 2,
    topK: 1,
    expertIds: Int32Array.of(3, 0),
    weights: Float64Array.of(1, 1),
  };
  const logits = Float64Array.of(1, 2, 3, 4);
  const o = { experts: 2, scoring: "sigmoid" } as const;
  const message = "slot 0 names expert 3, but experts are 0..1";
  expect(() => routeGradient(logits, routing, Float64Array.of(1, 1), o)).toThrow(message);
  expect(() => balanceLoss(logits, routing, { coefficient: 1 })).toThrow(message);
});
