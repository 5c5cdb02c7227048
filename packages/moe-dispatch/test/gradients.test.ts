import { expect, test } from "vitest";
import { createRng } from "@trireme/core";
import {
  type Routing,
  type WeightOptions,
  balanceLoss,
  expertChoice,
  noisyLogits,
  route,
  routeGradient,
  sinkhornRoute,
  spreadGradient,
  tokensPerExpert,
  zLoss,
} from "@trireme/moe-dispatch";
import { differences, dot, farthest, normals } from "./naive.ts";

// Central differences at 10⁻⁶ are right to about 10⁻¹⁰ of the values here; 10⁻⁸ leaves room.
const near = 1e-8;
const experts = 6;
const tokens = 7;
const logits = normals(tokens * experts, 11);

const weightForms: [string, WeightOptions][] = [
  ["softmax after", { experts, scoring: "softmax-after", scale: 1.5 }],
  ["softmax before", { experts, scoring: "softmax-before", scale: 2 }],
  ["softmax before, normalised", { experts, scoring: "softmax-before", normalize: true }],
  ["sigmoid", { experts, scoring: "sigmoid", scale: 2.5 }],
  ["sigmoid, not normalised", { experts, scoring: "sigmoid", normalize: false }],
];

function weigh(x: Float64Array, o: WeightOptions, chosen: Routing, pull: Float64Array): number {
  const r = route(x, { ...o, topK: chosen.topK, replay: chosen.expertIds });
  return dot(r.weights, pull);
}

for (const [name, o] of weightForms) {
  test(`the weights' gradient equals finite differences: ${name}`, () => {
    const chosen = route(logits, { ...o, topK: 3, padding: Uint8Array.of(0, 1, 0, 0, 0, 0, 0) });
    const pull = normals(tokens * 3, 12);
    const gradient = routeGradient(logits, chosen, pull, o);
    const expected = differences(logits, (x) => weigh(x, o, chosen, pull));
    expect(farthest(gradient, expected)).toBeLessThan(near);
    expect(gradient.some((g) => g !== 0)).toBe(true);
  });
}

test("the gradients of expert choice and of Sinkhorn routing equal finite differences", () => {
  const plain = { experts, scoring: "softmax-before" } as const;
  const byExpert = expertChoice(logits, { experts, capacityFactor: 2 });
  const balanced = sinkhornRoute(logits, { experts, topK: 2 });
  for (const chosen of [byExpert, balanced]) {
    const pull = normals(tokens * chosen.topK, 13);
    const gradient = routeGradient(logits, chosen, pull, plain);
    expect(
      farthest(
        gradient,
        differences(logits, (x) => weigh(x, plain, chosen, pull)),
      ),
    ).toBeLessThan(near);
  }
});

test("the gradient of noisy logits with respect to their spread equals finite differences", () => {
  const spread = normals(tokens * experts, 14);
  const pull = normals(tokens * experts, 15);
  const noisy = noisyLogits(logits, spread, createRng(16));
  const expected = differences(spread, (x) =>
    dot(noisyLogits(logits, x, createRng(16)).logits, pull),
  );
  expect(farthest(spreadGradient(spread, noisy.deviates, pull), expected)).toBeLessThan(near);
});

const padding = Uint8Array.of(0, 0, 1, 0, 0, 0, 1);
const routing = route(logits, { experts, topK: 2, scoring: "softmax-after", padding });
const whole = {
  tokens: 90,
  counts: tokensPerExpert(routing.expertIds, experts).map((n) => n * 13 + 5),
};
const losses: [string, Parameters<typeof balanceLoss>[2]][] = [
  ["over the batch", { coefficient: 0.01, padding }],
  ["of sigmoids", { coefficient: 0.01, padding, scoring: "sigmoid" }],
  ["over each sequence", { coefficient: 0.3, padding, sequenceEnds: Int32Array.of(2, 3, 3, 7) }],
  [
    "of sigmoids over each sequence",
    { coefficient: 1, scoring: "sigmoid", sequenceEnds: Int32Array.of(4, 7) },
  ],
  ["with counts of the global batch", { coefficient: 1, padding, whole }],
  ["over device groups", { coefficient: 1, padding, deviceGroups: 3 }],
];

for (const [name, o] of losses) {
  test(`the balance loss ${name}: its gradient equals finite differences and is not zero`, () => {
    const { gradient } = balanceLoss(logits, routing, o);
    const expected = differences(logits, (x) => balanceLoss(x, routing, o).value);
    expect(farthest(gradient, expected)).toBeLessThan(near);
    // The coefficient reaches the gradient, in proportion.
    const twice = balanceLoss(logits, routing, { ...o, coefficient: 2 * o.coefficient }).gradient;
    expect(
      farthest(
        twice,
        gradient.map((g) => 2 * g),
      ),
    ).toBeLessThan(1e-15);
    expect(Math.max(...gradient.map(Math.abs))).toBeGreaterThan(1e-5);
    if (o.padding !== undefined) expect([...gradient.subarray(12, 18)]).toEqual(Array(6).fill(0));
  });
}

test("the z-loss: its gradient equals finite differences", () => {
  const o = { experts, coefficient: 0.1, padding };
  const { gradient } = zLoss(logits, o);
  expect(
    farthest(
      gradient,
      differences(logits, (x) => zLoss(x, o).value),
    ),
  ).toBeLessThan(near);
  expect([...gradient.subarray(12, 18)]).toEqual(Array(6).fill(0));
});
