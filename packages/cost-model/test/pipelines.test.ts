import { defineCluster } from "@trireme/topology";
import { type Plan, type PlanOptions, definePlan, model } from "@trireme/workload";
import fc from "fast-check";
import { expect, test } from "vitest";
import { type Cost, type Estimate, estimate, stepCosts } from "@trireme/cost-model";

const llama = model("llama2-13b");
const gpt = model("gpt2-xl");
const cluster = defineCluster({ host: "dgx-a100-80", hosts: 2 });

function cost(o: PlanOptions, on = cluster, m = llama): Cost {
  return priced(estimate({ model: m, plan: definePlan(m, o), cluster: on, checkMemory: false }));
}

function priced(e: Estimate): Cost {
  if (!e.ok) throw new Error(e.reason);
  return e;
}

/** A usual plan with its pipelines written out, which `definePlan` would take back. */
function writtenOut(plan: Plan): Plan {
  const layers = plan.stageLayers!;
  const stages = layers.map((n) => ({ tp: plan.tp, layers: n }));
  const { stageLayers: _, ...rest } = plan;
  return { ...rest, pipelines: Array.from({ length: plan.dp }, () => stages) };
}

const order = ["tp", "cp", "pp", "dp"] as const;

test.each<readonly [string, Omit<PlanOptions, "globalBatch">]>([
  ["one device each", { dp: 8, stageLayers: [40] }],
  ["wide stages", { tp: 4, dp: 4, sequenceParallel: true, stageLayers: [40] }],
  ["several stages", { pp: 4, dp: 4, stageLayers: [8, 12, 12, 8] }],
  ["shared optimizers", { dp: 8, zero: 1, stageLayers: [40] }],
  ["sums behind backward", { pp: 2, dp: 8, overlapDataParallel: true, stageLayers: [20, 20] }],
  ["gpipe", { pp: 4, dp: 2, schedule: "gpipe", stageLayers: [10, 10, 10, 10] }],
  ["a table at both ends", { pp: 2, dp: 8, sequence: 1024, stageLayers: [24, 24] }],
])("pipelines that are alike cost what the usual plan does: %s", (_, o) => {
  const m = o.sequence === 1024 ? gpt : llama;
  const plan = definePlan(m, { globalBatch: 64, order, sequence: 2048, ...o });
  const usual = priced(estimate({ model: m, plan, cluster, checkMemory: false }));
  const staged = priced(
    estimate({ model: m, plan: writtenOut(plan), cluster, checkMemory: false }),
  );
  for (const [cause, seconds] of Object.entries<number>({ ...usual.breakdown })) {
    expect(staged.breakdown[cause as keyof Cost["breakdown"]]).toBeCloseTo(seconds, 9);
  }
  expect(staged.mfu).toBeCloseTo(usual.mfu, 9);
  expect(staged.memory.total).toBe(usual.memory.total);
});

const uneven = [
  [
    { tp: 2, layers: 24 },
    { tp: 2, layers: 16 },
  ],
  [
    { tp: 4, layers: 20 },
    { tp: 4, layers: 20 },
  ],
];

test("the wider pipeline takes more of the batch, and the step is shorter for it", () => {
  const even = cost({ globalBatch: 96, sequence: 2048, pipelines: uneven });
  const shared = cost({
    globalBatch: 96,
    sequence: 2048,
    pipelines: uneven,
    pipelineBatches: [32, 64],
  });
  expect(shared.step).toBeLessThan(0.8 * even.step);
  const swapped = cost({
    globalBatch: 96,
    sequence: 2048,
    pipelines: uneven,
    pipelineBatches: [64, 32],
  });
  expect(swapped.step).toBeGreaterThan(even.step);
});

test("the breakdown sums to the step and nothing is below zero, whatever the pipelines", () => {
  const stage = fc.record({
    tp: fc.constantFrom(1, 2, 4),
    layers: fc.integer({ min: 1, max: 12 }),
  });
  const pipeline = fc.array(stage, { minLength: 1, maxLength: 3 });
  fc.assert(
    fc.property(
      fc.array(pipeline, { minLength: 2, maxLength: 3 }),
      fc.constantFrom(0, 1),
      fc.boolean(),
      (shapes, zero, overlapDataParallel) => {
        // The last stage of each takes what is left of the model.
        const pipelines = shapes.map((stages) => {
          const before = stages.slice(0, -1).reduce((n, s) => n + s.layers, 0);
          return [...stages.slice(0, -1), { ...stages.at(-1)!, layers: 40 - before }];
        });
        const widest = Math.max(...pipelines.flat().map((s) => s.tp));
        const globalBatch = 8 * pipelines.length;
        const e = cost(
          { globalBatch, sequence: 1024, zero, overlapDataParallel, pipelines },
          defineCluster({ host: "dgx-a100-80", hosts: 8 }),
        );
        const parts = Object.values<number>({ ...e.breakdown });
        expect(parts.reduce((a, b) => a + b, 0)).toBeCloseTo(e.step, 12);
        expect(Math.min(...parts)).toBeGreaterThanOrEqual(0);
        expect(e.breakdown.dataParallel).toBeGreaterThan(0);
        if (widest === 1) expect(e.breakdown.tensorParallel).toBe(0);
        expect(e.mfu).toBeLessThan(1);
      },
    ),
    { numRuns: 60 },
  );
});

test("each stage is priced on its own devices: more layers for the faster ones are faster", () => {
  const mixed = defineCluster({
    pools: [
      { host: "dgx-h100", hosts: 1 },
      { host: "dgx-a100-80", hosts: 1 },
    ],
  });
  const on = (fast: number): Cost => {
    const rest = { tp: 8, layers: 40 - fast };
    const other = [{ tp: 8, layers: fast }, rest];
    // A second pipeline keeps the first from being the usual plan.
    const plan = definePlan(llama, {
      globalBatch: 64,
      sequence: 2048,
      pipelines: [other, [{ tp: 4, layers: 40 }]],
      pipelineBatches: [63, 1],
    });
    const wider = defineCluster({
      pools: [...mixed.pools, { host: "dgx-a100-80", hosts: 1 }],
    });
    return priced(estimate({ model: llama, plan, cluster: wider, checkMemory: false }));
  };
  // An H100 is somewhat more than twice an A100.
  expect(on(27).step).toBeLessThan(0.85 * on(20).step);
  expect(on(27).step).toBeLessThan(0.8 * on(36).step);
});

test("a stage that does not fit its devices is named with what it needs", () => {
  const small = defineCluster({ host: "dgx-a100-40", hosts: 1 });
  const plan = definePlan(llama, {
    globalBatch: 4,
    pipelines: [[{ tp: 2, layers: 40 }], [{ tp: 1, layers: 40 }]],
  });
  const e = estimate({ model: llama, plan, cluster: small });
  expect(e).toMatchObject({ ok: false });
  if (e.ok) return;
  // Narrow stages hold more: the second pipeline's only one.
  expect(e.reason).toMatch(/^pipeline rank 1 needs .* but a100-40 has/);
  expect(e.memory!.ranks).toHaveLength(2);
});

test("too few devices and another precision are results; costs by stage are of one pipeline alone", () => {
  const plan = definePlan(llama, { globalBatch: 96, pipelines: uneven });
  const one = defineCluster({ host: "dgx-a100-80", hosts: 1 });
  expect(estimate({ model: llama, plan, cluster: one })).toEqual({
    ok: false,
    reason: "2 pipelines = 12 ranks, but the cluster has 8 devices",
  });
  const old = defineCluster({ host: "dgx-v100-32", hosts: 2 });
  expect(estimate({ model: llama, plan, cluster: old })).toMatchObject({
    ok: false,
    reason: "v100-32 has no bf16 arithmetic; use fp16",
  });
  expect(() => stepCosts({ model: llama, plan, cluster })).toThrow("pipelines differ");
});
