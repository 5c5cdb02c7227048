import fc from "fast-check";
import { expect, test } from "vitest";
import { TriremeError } from "@trireme/core";
import { type Cluster, defineCluster, hostOf } from "@trireme/topology";
import { type Model, defineModel, definePlan, model, stages } from "@trireme/workload";
import {
  type Estimate,
  estimate,
  estimator,
  measuredPricer,
  rooflinePricer,
  stepCosts,
  sustainedClock,
} from "@trireme/cost-model";
import { clusters, models, randomPlan } from "./random-plan.ts";
import { referenceStage } from "./reference-stage.ts";

test("an estimator that has seen other plans gives the digits of one that has not", () => {
  // 84 plans of each of twelve pairs: a thousand.
  let compared = 0;
  for (const m of models) {
    for (const cluster of clusters) {
      const remembering = estimator({ model: m, cluster, checkMemory: false });
      fc.assert(
        fc.property(randomPlan(m), (plan) => {
          const afresh = estimate({ model: m, plan, cluster, checkMemory: false });
          expect(remembering(plan)).toStrictEqual(afresh);
          compared++;
        }),
        { numRuns: 84 },
      );
    }
  }
  expect(compared).toBeGreaterThanOrEqual(1000);
});

test("what it has seen of more microbatches, or of other layers computed again, it does not say of these", () => {
  const cluster = clusters[1]!;
  const uneven = defineModel({
    layers: 8,
    hidden: 1024,
    heads: 8,
    vocab: 32_768,
    position: "rotary",
    window: { size: 128, every: 2 },
  });
  // Stages of three layers: the first of some has a window, of others not, and of all two in three or one.
  const again = { pp: 3, stageLayers: [3, 2, 3], recomputeLayers: 1 } as const;
  // Experts whose only copy is a rank's own are not gathered.
  const copied = { ep: 2, zero: 3, gatheredCopies: true } as const;
  for (const [m, a, b] of [
    [models[1]!, { pp: 2, schedule: "gpipe" }, { pp: 2, schedule: "gpipe", globalBatch: 64 }],
    [models[1]!, { schedule: "gpipe", dp: 2 }, { schedule: "gpipe", dp: 4 }],
    [model("mixtral-8x7b"), { ...copied, dp: 2 }, { ...copied, dp: 4 }],
    [uneven, { ...again, recompute: "none" }, { ...again, recompute: "full" }],
    [
      uneven,
      { pp: 4, recompute: "none", recomputeLayers: 1 },
      { pp: 4, recompute: "full", recomputeLayers: 1 },
    ],
    [
      uneven,
      { pp: 2, stageLayers: [4, 4], recompute: "full", recomputeLayers: 1 },
      { pp: 2, stageLayers: [3, 5], recompute: "full", recomputeLayers: 1 },
    ],
  ] as const) {
    const plans = [a, b].map((o) => definePlan(m, { globalBatch: 16, ...o }));
    for (const order of [plans, plans.toReversed()]) {
      const remembering = estimator({ model: m, cluster, checkMemory: false });
      for (const plan of order) {
        expect(remembering(plan)).toStrictEqual(
          estimate({ model: m, plan, cluster, checkMemory: false }),
        );
      }
    }
  }
});

test("stages with as many layers of each form, of which others are computed again, cost what they are", () => {
  const m = defineModel({
    layers: 8,
    hidden: 1024,
    heads: 8,
    vocab: 32_768,
    context: 8192,
    position: "rotary",
    pattern: "W- *- *- W-",
    window: { size: 128 },
  });
  const plan = definePlan(m, { pp: 4, globalBatch: 16, recompute: "full", recomputeLayers: 1 });
  const { recompute } = stepCosts({ model: m, plan, cluster: clusters[1]! });
  // The first and the third begin with a window, the others with a layer that attends to all.
  expect(recompute[1]).toBeGreaterThan(recompute[0]!);
  expect(recompute[2]).toBe(recompute[0]);
  expect(recompute[3]).toBe(recompute[1]);
});

test("a table that is frozen has no gradient to sum between first and last stage", () => {
  const m = defineModel({ layers: 4, hidden: 512, heads: 8, vocab: 32_768, adapter: { rank: 8 } });
  const plan = definePlan(m, { pp: 2, globalBatch: 8 });
  expect(stepCosts({ model: m, plan, cluster: clusters[1]! }).sharedBytes).toBe(0);
});

function checkAgainstReference(m: Model, cluster: Cluster): void {
  const device = hostOf(cluster, 0).accelerator;
  fc.assert(
    fc.property(randomPlan(m), (plan) => {
      fc.pre(device.peak[plan.precision] !== undefined);
      fc.pre(plan.matrixPrecision === undefined || device.peak[plan.matrixPrecision] !== undefined);
      const costs = stepCosts({ model: m, plan, cluster });
      const pricer = rooflinePricer(device, plan.precision, { clock: sustainedClock(device) });
      const updates = new Float64Array(plan.pp);
      for (const s of stages(m, plan)) {
        const i = s.stage;
        const expected = referenceStage(m, plan, s, pricer, costs.communication);
        expect(costs.forward[i]).toBe(expected.forward);
        expect(costs.recompute[i]).toBe(expected.recompute);
        expect(costs.inputGradient[i]).toBe(expected.inputGradient);
        expect(costs.weightGradient[i]).toBe(expected.weightGradient);
        expect(costs.tensorParallel.forward[i]).toBe(expected.tensorParallel.forward);
        expect(costs.tensorParallel.backward[i]).toBe(expected.tensorParallel.backward);
        expect(costs.sharding.forward[i]).toBe(expected.sharding.forward);
        expect(costs.sharding.backward[i]).toBe(expected.sharding.backward);
        updates[i % plan.pp]! += expected.update;
      }
      expect(costs.optimizer).toStrictEqual(updates);
    }),
    { numRuns: 50 },
  );
}

test("stages put together from blocks are the sum of their own operators, to the last digit", () => {
  for (const m of models) for (const cluster of clusters) checkAgainstReference(m, cluster);
});

test("so are those of a hybrid, whose layers differ from stage to stage", () => {
  const [, h100] = clusters;
  checkAgainstReference(model("nemotron-h-8b"), h100!);
});

test("what an estimator has refused does not change what it says next", () => {
  const m = model("llama3-8b");
  const cluster = defineCluster({ host: "dgx-v100-32", hosts: 1 });
  const price = estimator({ model: m, cluster });
  const bf16 = definePlan(m, { globalBatch: 8, tp: 8, sequence: 1024 });
  const fp16 = definePlan(m, { globalBatch: 8, tp: 8, sequence: 1024, precision: "fp16" });
  const first: Estimate = price(bf16);
  expect(first).toMatchObject({ ok: false, reason: "v100-32 has no bf16 arithmetic; use fp16" });
  expect(price(fp16).ok).toBe(true);
  expect(price(bf16)).toStrictEqual(first);
});

test("a pricer that is passed in prices every plan of the estimator", () => {
  const m = model("llama3-8b");
  const cluster = defineCluster({ host: "dgx-h100", hosts: 1 });
  const plan = definePlan(m, { globalBatch: 8, tp: 8 });
  const flat = estimator({ model: m, cluster, pricer: { operator: () => 1e-3 } });
  // 33 layers' worth of kernels at a millisecond each outlast anything the roofline says.
  expect(flat(plan)).toMatchObject({ ok: true });
  const unmeasured = estimator({ model: m, cluster, pricer: measuredPricer(new Map()) });
  expect(() => unmeasured(plan)).toThrow(TriremeError);
});
