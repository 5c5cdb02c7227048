import { expect, test } from "vitest";
import type { ResolvedRun } from "@trireme/run";
import { smallRun, trainSteps, vocab, withRuntime } from "./small-run.ts";

interface Trained {
  readonly losses: readonly number[];
  /** Gradients of the first step. */
  readonly first: ReadonlyMap<string, Float32Array>;
}

function train(run: ResolvedRun): Promise<Trained> {
  return withRuntime(run, async (runtime) => {
    const start = await trainSteps(runtime, 0, 1);
    const first = await runtime.gradients();
    return { losses: [...start, ...(await trainSteps(runtime, 1, run.steps))], first };
  });
}

/** One rank's training of each form of the model, once. */
const references = new Map<object, Promise<Trained>>();
function reference(model: object): Promise<Trained> {
  let trained = references.get(model);
  if (trained === undefined) {
    trained = train(smallRun({}, model));
    references.set(model, trained);
  }
  return trained;
}

/** ‖a − b‖ / ‖b‖ of the worst tensor; every tensor of `b` must be there. */
function worstGradient(
  a: ReadonlyMap<string, Float32Array>,
  b: ReadonlyMap<string, Float32Array>,
): number {
  expect([...a.keys()].toSorted()).toEqual([...b.keys()].toSorted());
  let worst = 0;
  for (const [name, expected] of b) {
    const actual = a.get(name)!;
    let [difference, norm] = [0, 0];
    for (let i = 0; i < expected.length; i++) {
      difference += (actual[i]! - expected[i]!) ** 2;
      norm += expected[i]! ** 2;
    }
    worst = Math.max(worst, Math.sqrt(difference / norm));
  }
  return worst;
}

const gpt = {};
const llama = {
  position: "rotary",
  norm: "rmsnorm",
  activation: "swiglu",
  bias: false,
  kvHeads: 2,
} as const;

test.each([
  ["dp2", { dp: 2 }, gpt],
  ["pp2, 1F1B", { pp: 2 }, gpt],
  ["pp4, GPipe, microbatches of 2", { pp: 4, schedule: "gpipe", microbatch: 2 }, gpt],
  ["dp2 × pp2, 1F1B", { dp: 2, pp: 2 }, gpt],
  ["dp2 × pp2, untied head", { dp: 2, pp: 2 }, { tied: false }],
  ["dp2 × pp2, uneven stages", { dp: 2, pp: 2, stageLayers: [3, 1] }, gpt],
  ["pp2, interleaved by 2 chunks", { pp: 2, vpp: 2, schedule: "interleaved" }, gpt],
  ["dp2 × pp2, interleaved, Llama form", { dp: 2, pp: 2, vpp: 2 }, llama],
] as const)("%s trains as one rank does", async (_, plan, model) => {
  const one = await reference(model);
  const many = await train(smallRun(plan, model));
  // Rounding alone: sums over replicas and microbatches in another order, in f32.
  expect(worstGradient(many.first, one.first)).toBeLessThan(1e-5);
  many.losses.forEach((loss, step) =>
    expect(Math.abs(loss - one.losses[step]!)).toBeLessThan(1e-4),
  );
  // It learns: random weights begin at the entropy of a uniform guess.
  expect(one.losses[0]).toBeCloseTo(Math.log(vocab), 1);
  expect(one.losses.at(-1)).toBeLessThan(one.losses[0]! - 0.3);
});

test("the same plan and seed give the same bits", async () => {
  const [a, b] = [await train(smallRun({ dp: 2, pp: 2 })), await train(smallRun({ dp: 2, pp: 2 }))];
  expect(a.losses).toEqual(b.losses);
  expect(a.first).toEqual(b.first);
});
