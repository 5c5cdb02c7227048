import { estimate } from "@trireme/cost-model";
import { simulateStep, simulatedStep, sumStep, playableStep } from "@trireme/simulator";
import { playWorkload, toChakra } from "@trireme/simulator/chakra";
import { spans, statistics } from "@trireme/timeline";
import { defineCluster } from "@trireme/topology";
import { type Plan, type PlanOptions, definePlan, model } from "@trireme/workload";
import { expect, test } from "vitest";

const llama = model("llama2-13b");
const gpt = model("gpt2-xl");
const cluster = defineCluster({ host: "dgx-a100-80", hosts: 2 });

/** A usual plan with its pipelines written out, which `definePlan` would take back. */
function writtenOut(plan: Plan): Plan {
  const stages = plan.stageLayers!.map((layers) => ({ tp: plan.tp, layers }));
  const { stageLayers: _, ...rest } = plan;
  return { ...rest, pipelines: Array.from({ length: plan.dp }, () => stages) };
}

const order = ["tp", "cp", "pp", "dp"] as const;

test.each<readonly [string, Omit<PlanOptions, "globalBatch">]>([
  ["one device each", { dp: 8, stageLayers: [40] }],
  ["wide stages", { tp: 4, dp: 4, sequenceParallel: true, stageLayers: [40] }],
  ["several stages", { pp: 4, dp: 4, stageLayers: [8, 12, 12, 8] }],
  [
    "sends beside computing",
    { pp: 4, dp: 2, overlapPointToPoint: true, stageLayers: [8, 12, 12, 8] },
  ],
  ["shared optimizers", { dp: 8, zero: 1, stageLayers: [40] }],
  ["gpipe", { pp: 4, dp: 2, schedule: "gpipe", stageLayers: [10, 10, 10, 10] }],
  ["a table at both ends", { pp: 2, dp: 8, sequence: 1024, stageLayers: [24, 24] }],
])("pipelines that are alike take what the usual plan does: %s", (_, o) => {
  const m = o.sequence === 1024 ? gpt : llama;
  const plan = definePlan(m, { globalBatch: 64, order, sequence: 2048, ...o });
  const usual = sumStep({ model: m, plan, cluster, unfold: true });
  const staged = sumStep({ model: m, plan: writtenOut(plan), cluster });
  expect(staged.step / usual.step).toBeCloseTo(1, 9);
  expect(staged.bubble).toBeCloseTo(usual.bubble, 9);
  expect(staged.exposedCommunication).toBeCloseTo(usual.exposedCommunication, 9);
  expect(staged.mfu / usual.mfu).toBeCloseTo(1, 9);
  expect(staged.hfu / usual.hfu).toBeCloseTo(1, 9);
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

const options = { globalBatch: 96, sequence: 2048, pipelines: uneven, pipelineBatches: [32, 64] };

test.each<Partial<PlanOptions>>([
  {},
  { sequenceParallel: true },
  { zero: 1, overlapDataParallel: true },
  { schedule: "gpipe", overlapPointToPoint: true },
])("pipelines that differ take what the cost model says, within a twentieth: %j", (more) => {
  const plan = definePlan(llama, { ...options, ...more });
  const priced = estimate({ model: llama, plan, cluster, checkMemory: false });
  const { step, timeline } = simulateStep({ model: llama, plan, cluster });
  expect(priced.ok && step / priced.step).toBeGreaterThan(0.95);
  expect(priced.ok && step / priced.step).toBeLessThan(1.05);
  const { makespan, ranks } = statistics(timeline);
  expect(ranks).toHaveLength(12);
  for (const { compute, exposedCommunication, other, idle } of ranks) {
    expect(compute + exposedCommunication + other + idle).toBeCloseTo(makespan, 9);
  }
  // Each pipeline's forwards: its stages' ranks, each of its own microbatches.
  const forwards = [...spans(timeline)].filter(
    (s) => /^\d+F\d+$/.test(s.action) && s.kind === "forward",
  );
  const cut = more.overlapDataParallel === true;
  const whole = new Set(forwards.map((s) => `${s.rank} ${s.action}`));
  expect(whole.size).toBe(4 * 32 + 8 * 64);
  if (!cut) expect(forwards).toHaveLength(whole.size);
});

test("sums behind the last backward are not waited for as long as those after it", () => {
  const step = (overlapDataParallel: boolean): number => {
    const plan = definePlan(llama, { ...options, zero: 1, overlapDataParallel });
    return sumStep({ model: llama, plan, cluster }).step;
  };
  expect(step(true)).toBeLessThan(step(false));
});

test("a slow rank of one pipeline holds the others up at the sums alone", () => {
  const plan = definePlan(llama, options);
  const run = (speed: number): ReturnType<typeof sumStep> =>
    sumStep({ model: llama, plan, cluster, speed: (rank) => (rank === 0 ? speed : 1) });
  const [even, slow] = [run(1), run(0.8)];
  expect(slow.step).toBeGreaterThan(even.step);
  for (let rank = 0; rank < 12; rank++) {
    const grown = slow.rank(rank).compute / even.rank(rank).compute;
    expect(grown).toBeCloseTo(rank === 0 ? 1.25 : 1, 9);
  }
  const shared = sumStep({ model: llama, plan, cluster, network: "shared" });
  expect(shared.step).toBeGreaterThanOrEqual(even.step * (1 - 1e-12));
});

test("pipelines that differ go to execution traces, and options that they lack are refused", () => {
  const plan = definePlan(llama, options);
  const workload = toChakra(playableStep({ model: llama, plan, cluster }).program);
  expect(workload.traces).toHaveLength(12);
  const played = playWorkload(workload);
  expect(played.time / sumStep({ model: llama, plan, cluster }).step).toBeCloseTo(1, 2);
  const step = { model: llama, plan, cluster };
  expect(() => simulatedStep(step)).toThrow("2 pipelines that differ have no ranks that do alike");
  const lengths = { lengths: () => [2048] };
  expect(() => sumStep({ ...step, ...lengths })).toThrow("lengths is not known of pipelines");
  const small = defineCluster({ host: "dgx-a100-80", hosts: 1 });
  expect(() => sumStep({ ...step, cluster: small })).toThrow(
    "the widths of 2 pipelines' stages = 12 ranks, but the cluster has 8 devices",
  );
});
