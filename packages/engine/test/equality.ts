/** Trains a plan and one rank alike, and compares losses and gradients. */
import { expect } from "vitest";
import type { ResolvedRouter, ResolvedRun } from "@trireme/run";
import type { EmbeddedRuntime, EmbeddedRuntimeOptions } from "@trireme/engine";
import type { ModelOptions } from "@trireme/workload";
import { type Degrees, smallRun, trainSteps, vocab, withRuntime } from "./small-run.ts";

interface Trained {
  readonly losses: readonly number[];
  /** Gradients of the first step. */
  readonly first: ReadonlyMap<string, Float32Array>;
}

/** Losses of `steps` steps, and the gradients of the first. */
export function train(
  run: ResolvedRun,
  steps: number,
  options: EmbeddedRuntimeOptions = {},
): Promise<Trained> {
  const use = async (runtime: EmbeddedRuntime): Promise<Trained> => {
    const start = await trainSteps(runtime, 0, 1);
    const first = await runtime.gradients();
    return { losses: [...start, ...(await trainSteps(runtime, 1, steps))], first };
  };
  return withRuntime(run, use, options);
}

/** One rank's training of each form of the model and microbatch, once. */
const references = new Map<string, Promise<Trained>>();
export function reference(
  form: Partial<ModelOptions>,
  steps: number,
  plan: Degrees = {},
  router: ResolvedRouter = {},
): Promise<Trained> {
  const key = JSON.stringify([form, steps, plan, router]);
  let trained = references.get(key);
  if (trained === undefined) {
    trained = train({ ...smallRun(plan, form), router }, steps);
    references.set(key, trained);
  }
  return trained;
}

/** ‖a − b‖ / ‖b‖ of the worst tensor; every tensor of `b` must be there. */
export function worstGradient(
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
    // A gradient that is exactly 0 has no relative difference.
    worst = Math.max(worst, norm === 0 ? difference : Math.sqrt(difference / norm));
  }
  return worst;
}

/** Expects `steps` steps of a plan to be those of one rank, and the model to learn. */
export async function expectEqual(
  plan: Degrees,
  form: Partial<ModelOptions>,
  steps: number,
  router: ResolvedRouter = {},
): Promise<void> {
  // One rank drops what each rank of the plan drops of its part of a microbatch.
  const { expertCapacity, contextExchange = "ring", microbatch = 1, cp = 1, tp = 1 } = plan;
  const same = expertCapacity === undefined ? {} : { expertCapacity, microbatch, contextExchange };
  const capacityParts = { microbatch, cp, tp };
  const parts = expertCapacity === undefined ? {} : { capacityParts };
  const one = await reference(form, steps, same, { ...parts, ...router });
  const many = await train({ ...smallRun(plan, form), router }, steps);
  // Rounding alone: sums over replicas and microbatches in another order, in f32.
  expect(worstGradient(many.first, one.first)).toBeLessThan(1e-5);
  many.losses.forEach((loss, step) =>
    expect(Math.abs(loss - one.losses[step]!)).toBeLessThan(1e-4),
  );
  // It learns: random weights begin at the entropy of a uniform guess.
  expect(one.losses[0]).toBeCloseTo(Math.log(vocab), 1);
  expect(one.losses.at(-1)).toBeLessThan(one.losses[0]! - 0.3);
}

export const gpt = {};
export const llama = {
  position: "rotary",
  norm: "rmsnorm",
  activation: "swiglu",
  bias: false,
  tied: false,
  kvHeads: 2,
} as const;

/** Mixtures of experts: as Mixtral with a shared expert, as DeepSeek-V3, and as Switch. */
export const mixtral = {
  ...llama,
  ffn: 48,
  experts: { count: 4, active: 2, ffn: 24, sharedFfn: 24 },
} as const;
export const deepSeek = {
  ...mixtral,
  experts: { ...mixtral.experts, selectionBias: true, denseLayers: 1 },
} as const;
export const switchForm = { experts: { count: 4, active: 1, ffn: 24, every: 2 } } as const;

/** As Qwen 3 and Qwen 2 MoE: queries and keys normalised by head, a gate on the shared expert; routers with biases. */
export const qwenForm = {
  ...mixtral,
  qkNorm: "head",
  outputBias: true,
  experts: { ...mixtral.experts, sharedGate: true, routerBias: true },
} as const;

/** As GPT-NeoX: half of each head is turned, two norms beside each other, a head with a bias. */
export const neoxForm = {
  position: "rotary",
  rotaryFraction: 0.5,
  block: "parallel",
  sharedNorm: false,
  tied: false,
  headBias: true,
} as const;

/** Latent attention: as DeepSeek-V3, and as DeepSeek-V2-Lite, whose queries have no latent. */
export const latentForm = {
  ...deepSeek,
  kvHeads: 4,
  latent: { queryRank: 24, keyValueRank: 16, nopeDim: 8, ropeDim: 4, valueDim: 8 },
} as const;
export const latentLite = {
  ...llama,
  kvHeads: 4,
  latent: { keyValueRank: 16, nopeDim: 8, ropeDim: 4, valueDim: 12 },
} as const;

/** Attention and feed-forward beside each other, half of the layers within a window. */
export const parallelForm = {
  ...llama,
  block: "parallel",
  sharedNorm: true,
  window: { size: 5, every: 2 },
} as const;
