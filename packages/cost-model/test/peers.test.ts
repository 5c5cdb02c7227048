/** Inputs that other predictors hang, crash or go wrong on, and what must hold of any prediction. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { GBps, Gbps, TriremeError, us } from "@trireme/core";
import { collectiveTime } from "@trireme/collectives";
import { defineCluster, defineHost, defineLink, hostOf } from "@trireme/topology";
import {
  type Model,
  type PlanOptions,
  defineModel,
  definePlan,
  model,
  parameters,
  ranks,
  stageParameters,
  stages,
} from "@trireme/workload";
import { type Cost, type EstimateOptions, estimate, estimator } from "@trireme/cost-model";
import { clusters, models, randomPlan } from "./random-plan.ts";

const llama = model("llama3-8b");
const h100 = (devices: number): ReturnType<typeof defineCluster> =>
  defineCluster({ host: "dgx-h100", hosts: Math.ceil(devices / 8) });

function cost(o: EstimateOptions): Cost {
  const e = estimate({ checkMemory: false, ...o });
  if (!e.ok) throw new Error(e.reason);
  return e;
}

function priced(m: Model, o: PlanOptions): Cost {
  const plan = definePlan(m, o);
  return cost({ model: m, plan, cluster: h100(ranks(plan)) });
}

/** Each is to answer within a second. */
const second = 1000;

test(
  "fewer microbatches than stages leave most of a pipeline waiting, and say so",
  { timeout: second },
  () => {
    const e = priced(llama, { pp: 8, globalBatch: 2 });
    // (p - 1)/(m + p - 1) of the time for equal stages is 7/9; the head makes the last stage the longest.
    expect(e.breakdown.bubble / e.step).toBeGreaterThan(0.5);
    expect(e.breakdown.bubble / e.step).toBeLessThan(7 / 9);
  },
);

test.each([
  [
    "a batch that the replicas cannot share",
    { dp: 3, globalBatch: 16 },
    "globalBatch 16 is not a multiple of dp 3",
  ],
  [
    "the setup of SimAI's issue 202",
    { tp: 8, pp: 8, dp: 23, globalBatch: 32 },
    "globalBatch 32 is not a multiple of dp 23",
  ],
  [
    "interleaving fewer microbatches than ranks",
    { pp: 4, vpp: 2, globalBatch: 3 },
    "3 microbatches are fewer than pp 4; use 4 or more",
  ],
  ["more stages than layers", { pp: 64, globalBatch: 64 }, "layers 32 are fewer than pp 64"],
  ["tp that splits no head", { tp: 24, globalBatch: 1 }, "heads 32 is not a multiple of tp 24"],
  [
    "a schedule that is not known",
    { schedule: "pipedream" as never, globalBatch: 8 },
    'schedule "pipedream" is not one of',
  ],
  [
    "layers that do not add up",
    { pp: 4, stageLayers: [1, 2, 2, 3], globalBatch: 4 },
    "but llama3-8b has 32 layers",
  ],
  ["half a replica", { dp: 0.5, globalBatch: 1 }, "dp 0.5 must be a whole number"],
] as const)("%s is refused with the rule", { timeout: second }, (_, options, message) => {
  expect(() => definePlan(llama, options)).toThrow(TriremeError);
  expect(() => definePlan(llama, options)).toThrow(message);
});

test("more ranks than devices are refused with both numbers", { timeout: second }, () => {
  const plan = definePlan(llama, { tp: 8, dp: 4, globalBatch: 4 });
  const e = estimate({ model: llama, plan, cluster: h100(8) });
  expect(e).toMatchObject({
    ok: false,
    reason: expect.stringContaining("32 ranks, but the cluster has 8"),
  });
});

test(
  "tensor parallelism over three hosts is slower than within one, and has one answer",
  { timeout: second },
  () => {
    const wide = defineModel({
      layers: 8,
      hidden: 12_288,
      heads: 96,
      vocab: 49_152,
      context: 2048,
    });
    const three = priced(wide, { tp: 24, globalBatch: 4 });
    const one = priced(wide, { tp: 8, globalBatch: 4 });
    expect(three.breakdown.tensorParallel).toBeGreaterThan(one.breakdown.tensorParallel);
    expect(priced(wide, { tp: 24, globalBatch: 4 })).toStrictEqual(three);
  },
);

test(
  "deep pipelines, groups of one, and groups that overlap all have prices",
  { timeout: second },
  () => {
    expect(priced(llama, { globalBatch: 1 }).breakdown.dataParallel).toBe(0);
    expect(priced(llama, { pp: 16, globalBatch: 32 }).step).toBeGreaterThan(0);
    // Each rank is in a tensor, a context and a data group at once.
    const all = priced(llama, { tp: 2, cp: 2, dp: 2, pp: 2, globalBatch: 8 });
    for (const cause of ["tensorParallel", "dataParallel", "pointToPoint"] as const) {
      expect(all.breakdown[cause]).toBeGreaterThan(0);
    }
  },
);

test("a pass of more than 2^31 nanoseconds is a time like any other", { timeout: second }, () => {
  const long = defineModel({
    layers: 1,
    hidden: 32_768,
    heads: 256,
    vocab: 1000,
    context: 2 ** 20,
  });
  expect(priced(long, { globalBatch: 1 }).step).toBeGreaterThan(2 ** 31 / 1e9);
});

test(
  "links of different latency are each priced by their own",
  () => {
    const sends = (latency: number): number => {
      const made = defineHost({
        name: "lopsided",
        accelerator: "h100",
        accelerators: 4,
        link: defineLink("nvlink", GBps(450), us(1)),
        network: defineLink("network", Gbps(400), latency),
      });
      const plan = definePlan(llama, { tp: 4, pp: 2, globalBatch: 8 });
      const cluster = defineCluster({ host: made, hosts: 2 });
      return cost({ model: llama, plan, cluster }).breakdown.pointToPoint;
    };
    // Eight microbatches, each waits for two messages; 49 µs more for each message. To rounding.
    expect(sends(us(50)) - sends(us(1))).toBeCloseTo(8 * 2 * us(49), 12);
  },
  second,
);

test(
  "stages of one, two, two and three layers take the time of the longest",
  { timeout: second },
  () => {
    const eight = defineModel({ layers: 8, hidden: 4096, heads: 32, vocab: 1024, context: 4096 });
    const even = priced(eight, { pp: 4, globalBatch: 64, stageLayers: [2, 2, 2, 2] });
    const uneven = priced(eight, { pp: 4, globalBatch: 64, stageLayers: [1, 2, 2, 3] });
    // The pace is that of 3 layers, not of 2: ends and fill take the rest of the 3/2.
    expect(uneven.step / even.step).toBeGreaterThan(1.35);
    expect(uneven.step / even.step).toBeLessThan(1.5);
  },
);

test(
  "SwiGLU has three matrices: Qwen 72B has 72 billion parameters, not 56",
  { timeout: second },
  () => {
    const qwen = defineModel({
      layers: 80,
      hidden: 8192,
      heads: 64,
      ffn: 24_576,
      vocab: 152_064,
      context: 32_768,
      activation: "swiglu",
      norm: "rmsnorm",
      position: "rotary",
      bias: false,
      qkvBias: true,
      tied: false,
    });
    expect(parameters(qwen).total / 1e9).toBeCloseTo(72.3, 1);
  },
);

test("no prediction is above the peak, and its interval holds it", { timeout: 10 * second }, () => {
  for (const m of models) {
    for (const cluster of clusters) {
      const price = estimator({ model: m, cluster, checkMemory: false });
      fc.assert(
        fc.property(randomPlan(m), (plan) => {
          // Over what the fastest format of the plan's products could do.
          const { peak } = hostOf(cluster, 0).accelerator;
          const fastest =
            plan.matrixPrecision === undefined
              ? 1
              : (peak[plan.matrixPrecision] ?? 0) / peak[plan.precision]!;
          const e = price(plan);
          fc.pre(e.ok);
          if (!e.ok) return;
          expect(e.mfu).toBeGreaterThan(0);
          expect(e.mfu).toBeLessThan(Math.max(1, fastest));
          expect(e.interval.low).toBeLessThanOrEqual(e.step);
          expect(e.interval.high).toBeGreaterThan(e.step);
        }),
        { numRuns: 40 },
      );
    }
  }
});

test("adding devices to a group changes what its all-reduce takes", { timeout: second }, () => {
  const times = [2, 4, 8, 16, 32, 64].map(
    (dp) => priced(llama, { dp, globalBatch: 64 }).breakdown.dataParallel,
  );
  // Within a host a switch that sums may make eight faster than four; no two take the same.
  expect(new Set(times).size).toBe(times.length);
  expect(times[5]).toBeGreaterThan(times[2]!);
});

test(
  "the order of a group's devices and the order of a plan's options change nothing",
  { timeout: second },
  () => {
    const cluster = h100(16);
    const order = Array.from({ length: 16 }, (_, i) => i);
    const turned = order.map((i) => (i + 5) % 16);
    const time = (devices: readonly number[]): number =>
      collectiveTime({ operation: "all-reduce", bytes: 1e8, cluster, ranks: devices });
    expect(time(turned)).toBe(time(order));
    const plan = definePlan(llama, { tp: 4, dp: 4, globalBatch: 16, recompute: "full" });
    const reversed = Object.fromEntries(
      Object.entries(plan).toReversed(),
    ) as unknown as typeof plan;
    const price = estimator({ model: llama, cluster });
    expect(price(reversed)).toStrictEqual(price(plan));
  },
);

test(
  "without ZeRO the replicas pay an all-reduce of the gradients and no all-gather",
  { timeout: second },
  () => {
    const plan = definePlan(llama, { dp: 8, globalBatch: 8, zero: 0 });
    const cluster = h100(8);
    const gradients = 4 * stageParameters(llama, plan, stages(llama, plan)[0]!).total;
    const devices = Array.from({ length: 8 }, (_, i) => i);
    const expected = collectiveTime({
      operation: "all-reduce",
      bytes: gradients,
      cluster,
      ranks: devices,
    });
    expect(cost({ model: llama, plan, cluster }).breakdown.dataParallel).toBe(expected);
  },
);

test(
  "every pipeline of two ranks and more has a bubble, none of one has",
  { timeout: second },
  () => {
    for (const pp of [2, 4, 8, 16]) {
      expect(priced(llama, { pp, globalBatch: 64 }).breakdown.bubble).toBeGreaterThan(0);
    }
    // What is left of subtracting the parts from the whole: below a nanosecond of a step of seconds.
    expect(priced(llama, { globalBatch: 64 }).breakdown.bubble).toBeLessThan(1e-9);
  },
);
