import fc from "fast-check";
import { expect, test } from "vitest";
import { TFLOPS, GBps, GiB } from "@trireme/core";
import { cpuHost, defineCluster } from "@trireme/topology";
import { type Plan, defineModel, definePlan, model, ranks, stagesOnRank } from "@trireme/workload";
import {
  type Cost,
  type EstimateOptions,
  closedFormMakespan,
  estimate,
  stepCosts,
} from "@trireme/cost-model";

function cost(o: EstimateOptions): Cost {
  const e = estimate({ checkMemory: false, ...o });
  if (!e.ok) throw new Error(e.reason);
  return e;
}

const llama = model("llama3-8b");
const dgx = (gpus: number): ReturnType<typeof defineCluster> =>
  defineCluster({ host: "dgx-h100", hosts: Math.ceil(gpus / 8) });

test("the breakdown sums to the step, no cause is negative, and nothing exceeds the peak", () => {
  fc.assert(
    fc.property(
      fc.record({
        tp: fc.constantFrom(1, 2, 4, 8),
        pp: fc.constantFrom(1, 2, 4, 5),
        dp: fc.constantFrom(1, 2, 7, 64),
        vpp: fc.constantFrom(1, 2),
        microbatch: fc.constantFrom(1, 3),
        sequenceParallel: fc.boolean(),
        recompute: fc.constantFrom("none" as const, "selective" as const, "full" as const),
        zero: fc.constantFrom(0 as const, 1 as const, 2 as const, 3 as const),
        flashAttention: fc.boolean(),
        overlapDataParallel: fc.boolean(),
        overlapTensorParallel: fc.boolean(),
        overlapPointToPoint: fc.boolean(),
      }),
      fc.integer({ min: 1, max: 3 }),
      (o, rounds) => {
        fc.pre(o.pp > 1 || o.vpp === 1);
        const plan = definePlan(llama, { ...o, globalBatch: o.dp * o.microbatch * o.pp * rounds });
        const e = cost({ model: llama, plan, cluster: dgx(ranks(plan)) });
        const parts = Object.values(e.breakdown).map(Number);
        for (const part of parts) expect(part).toBeGreaterThanOrEqual(0);
        // Rounding of six additions.
        expect(parts.reduce((a, b) => a + b, 0) / e.step).toBeCloseTo(1, 12);
        expect(e.mfu).toBeGreaterThan(0);
        expect(e.mfu).toBeLessThan(1);
        // Rounding of the parts is below a nanosecond a step.
        expect(e.breakdown.bubble > 1e-9).toBe(o.pp > 1);
      },
    ),
    { numRuns: 60 },
  );
});

/** Makespan of equal stages, forward 1 s and backward 2 s. */
const equal = (schedule: Plan["schedule"], p: number, v: number, m: number): number =>
  closedFormMakespan({
    schedule,
    ranks: p,
    chunks: v,
    microbatches: m,
    forward: new Float64Array(p * v).fill(1),
    backward: new Float64Array(p * v).fill(2),
    weightGradient: new Float64Array(p * v).fill(1),
    onRank: Array.from({ length: p }, (_, rank) => stagesOnRank({ pp: p, vpp: v, schedule }, rank)),
    pointToPoint: 0,
    overlapped: true,
  });

test("equal stages take the published closed forms", () => {
  expect(equal("1f1b", 4, 1, 8)).toBe((8 + 4 - 1) * 3);
  expect(equal("gpipe", 4, 1, 8)).toBe((8 + 4 - 1) * 3);
  // m(f + b) of v chunks, and a ramp of p − 1 chunks.
  expect(equal("interleaved", 4, 2, 8)).toBe(8 * 2 * 3 + 3 * 3);
  expect(equal("1f1b", 1, 1, 5)).toBe(15);
});

test("a makespan that is passed in is the one that counts", () => {
  const plan = definePlan(llama, { pp: 4, globalBatch: 8 });
  const base = { model: llama, plan, cluster: dgx(4) };
  const twice = cost({ ...base, makespan: (c) => 2 * closedFormMakespan(c) });
  expect(twice.breakdown.bubble).toBeGreaterThan(cost(base).breakdown.bubble);
});

test("what cannot run is a result with its numbers", () => {
  const gpt = model("gpt3-175b");
  const small = definePlan(gpt, { tp: 8, globalBatch: 1 });
  const oom = estimate({
    model: gpt,
    plan: small,
    cluster: defineCluster({ host: "dgx-a100-80", hosts: 1 }),
  });
  expect(oom).toMatchObject({
    ok: false,
    reason: expect.stringMatching(/^pipeline rank 0 needs .* but a100-80 has 80 GiB$/),
  });
  const many = definePlan(llama, { dp: 16, globalBatch: 16 });
  expect(estimate({ model: llama, plan: many, cluster: dgx(8) })).toMatchObject({
    ok: false,
    reason: "tp(1) x dp(16) x pp(1) = 16 ranks, but the cluster has 8 devices",
  });
  const volta = defineCluster({ host: "dgx-v100-32", hosts: 1 });
  const tiny = defineModel({ layers: 2, hidden: 256, heads: 4, vocab: 1000 });
  expect(
    estimate({ model: tiny, plan: definePlan(tiny, { globalBatch: 1 }), cluster: volta }),
  ).toMatchObject({
    ok: false,
    reason: "v100-32 has no bf16 arithmetic; use fp16",
  });
});

const machine = (cores: number): ReturnType<typeof defineCluster> =>
  defineCluster({
    host: cpuHost({
      cores,
      devices: 4,
      peak: TFLOPS(0.1),
      memory: GiB(64),
      memoryBandwidth: GBps(1000) * cores,
    }),
    hosts: 1,
  });

test("a core that emulates BF16 is slower for it, and keeps smaller activations", () => {
  const tiny = defineModel({ layers: 4, hidden: 256, heads: 4, vocab: 1000, context: 128 });
  const of = (precision: "fp32" | "bf16"): ReturnType<typeof cost> => {
    const plan = definePlan(tiny, { dp: 4, globalBatch: 16, precision });
    return cost({ model: tiny, plan, cluster: machine(4) });
  };
  const [whole, emulated] = [of("fp32"), of("bf16")];
  expect(emulated.breakdown.compute).toBeGreaterThan(whole.breakdown.compute);
  expect(emulated.memory.activations).toBeLessThan(whole.memory.activations);
  // Products are as fast: no more is lost than the writing out of operands takes.
  expect(emulated.breakdown.compute).toBeLessThan(2 * whole.breakdown.compute);
});

test("devices that share cores take the time of their work", () => {
  const tiny = defineModel({ layers: 4, hidden: 256, heads: 4, vocab: 1000, context: 128 });
  const plan = definePlan(tiny, { dp: 4, globalBatch: 16, precision: "fp32" });
  const own = cost({ model: tiny, plan, cluster: machine(4) });
  const shared = cost({ model: tiny, plan, cluster: machine(2) });
  expect(shared.breakdown.compute / own.breakdown.compute).toBeCloseTo(2, 6);
  // A pipeline leaves its waiting devices' cores to the others: less than twice.
  const pipeline = definePlan(tiny, { pp: 4, globalBatch: 4, precision: "fp32" });
  const ratio =
    cost({ model: tiny, plan: pipeline, cluster: machine(2) }).step /
    cost({ model: tiny, plan: pipeline, cluster: machine(4) }).step;
  expect(ratio).toBeGreaterThanOrEqual(1);
  expect(ratio).toBeLessThan(1.9);
});

test("step costs are per stage, and the kernels of a pass sum to it", () => {
  const plan = definePlan(llama, { pp: 4, vpp: 2, tp: 2, globalBatch: 8 });
  const costs = stepCosts({
    model: llama,
    plan,
    cluster: dgx(8),
    pricer: { operator: (op) => op.flops / 1e15 },
  });
  expect(costs.forward).toHaveLength(8);
  expect(costs.optimizer).toHaveLength(4);
  for (let s = 0; s < 8; s++) {
    const kernels = costs
      .operators(s, "forward")
      .reduce((sum, x) => sum + x.seconds * x.operator.count, 0);
    expect(kernels + costs.tensorParallel.forward[s]!).toBeCloseTo(costs.forward[s]!, 12);
  }
  expect(costs.sharedBytes).toBe(0);
});

test("more than 2^31 nanoseconds of work and tokens beyond 2^31 are numbers like others", () => {
  const gpt = model("gpt3-175b");
  const plan = definePlan(gpt, { globalBatch: 1_048_576 });
  const e = cost({ model: gpt, plan, cluster: dgx(1) });
  expect(e.step).toBeGreaterThan(1e6);
  expect(Number.isFinite(e.tokensPerSecond)).toBe(true);
});
