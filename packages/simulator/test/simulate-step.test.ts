import fc from "fast-check";
import { expect, test } from "vitest";
import { type Pricer, estimate, stepCosts } from "@trireme/cost-model";
import { createSchedule, replay } from "@trireme/schedulers";
import {
  type Part,
  type StepDescription,
  type TimedCollective,
  play,
  simulateStep,
  simulatedStep,
  stepProgram,
} from "@trireme/simulator";
import { statistics } from "@trireme/timeline";
import { type Cluster, type Host, cpuHost, defineCluster, host } from "@trireme/topology";
import {
  type Plan,
  type PlanOptions,
  defineModel,
  definePlan,
  microbatches,
} from "@trireme/workload";

const model = defineModel({ layers: 24, hidden: 1024, heads: 16, vocab: 32_000, context: 512 });
const plan = (o: Partial<Plan>): Plan =>
  definePlan(model, { globalBatch: 64, ...o } satisfies PlanOptions);

/** A DGX A100 whose links are `times` faster, with no latency where that is infinite. */
function cluster(hosts: number, times = 1): Cluster {
  // Without its interior, whose wires would hold against the link.
  const { interior: _, ...a100 } = host("dgx-a100-80");
  const faster = (link: Host["link"]): Host["link"] => ({
    ...link,
    bandwidth: link.bandwidth * times,
    latency: times > 1e9 ? 0 : link.latency,
  });
  return defineCluster({
    host: { ...a100, link: faster(a100.link), network: faster(a100.network) },
    hosts,
  });
}

/** A CPU host with four devices, and no cost of messages. */
function machine(cores: number): Cluster {
  const cpu = cpuHost({ cores, devices: 4, peak: 1e11, memory: 64e9, memoryBandwidth: 4e10 });
  return defineCluster({ host: { ...cpu, link: cluster(1, 1e30).pools[0]!.host.link }, hosts: 1 });
}

/** A millisecond for every operator but the optimizer's. */
const flat: Pricer = { operator: (op) => (op.pass === "update" ? 0 : 1e-3) };

const shapes = fc
  .record({
    tp: fc.constantFrom(1, 2, 4),
    pp: fc.constantFrom(1, 2, 4),
    dp: fc.constantFrom(1, 2, 4),
    vpp: fc.constantFrom(1, 2, 3),
    zero: fc.constantFrom(0 as const, 1 as const, 3 as const),
    recompute: fc.constantFrom("none" as const, "full" as const),
    sequenceParallel: fc.boolean(),
    overlapDataParallel: fc.boolean(),
    overlapPointToPoint: fc.boolean(),
  })
  .map((o) =>
    plan({ ...o, vpp: o.pp > 1 ? o.vpp : 1, sequenceParallel: o.sequenceParallel && o.tp > 1 }),
  );

test("with costless communication and update the step is exactly the schedule's replay", () => {
  for (const [schedule, vpp] of [
    ["gpipe", 1],
    ["1f1b", 1],
    ["interleaved", 3],
  ] as const) {
    const p = plan({ pp: 4, vpp, schedule });
    const o = { model, plan: p, cluster: cluster(1), pricer: flat };
    const costs = stepCosts(o);
    const { makespan, busy } = replay(
      createSchedule(schedule, { ranks: 4, chunks: vpp, microbatches: microbatches(p) }),
      {
        forward: (s) => costs.forward[s]!,
        backward: (s) => costs.inputGradient[s]! + costs.weightGradient[s]!,
      },
    );
    const free = { duration: 0, latency: 0, bytes: 0, lane: "intra" } as const;
    const { description } = simulatedStep(o);
    const { tied: _, ...sync } = { ...description.sync, optimizer: [0, 0, 0, 0] };
    const step: StepDescription = { ...description, transfer: () => free, sync };
    const seen = statistics(play(stepProgram(step)));
    // Equal times may be summed in another order along another path: rounding of 1e-12 at most.
    expect(Math.abs(seen.makespan / makespan - 1)).toBeLessThan(1e-12);
    seen.ranks.forEach((r, i) => expect(Math.abs(r.compute / busy[i]! - 1)).toBeLessThan(1e-12));
  }
});

test("every rank's time is conserved, and computing is what the cost model says", () => {
  fc.assert(
    fc.property(shapes, (p) => {
      const o = { model, plan: p, cluster: cluster(8) };
      const { timeline, step, bubble, exposedCommunication } = simulateStep(o);
      const s = statistics(timeline);
      expect(s.makespan).toBe(step);
      const costs = stepCosts(o);
      s.ranks.forEach((r, rank) => {
        expect(r.busy + r.idle).toBeCloseTo(step, 12);
        let computed = costs.optimizer[rank]!;
        for (let stage = rank; stage < costs.forward.length; stage += p.pp) {
          const passes = [
            costs.forward,
            costs.recompute,
            costs.inputGradient,
            costs.weightGradient,
          ];
          const parallel = [costs.tensorParallel, costs.sharding];
          for (const pass of passes) computed += microbatches(p) * pass[stage]!;
          for (const c of parallel) {
            computed -= microbatches(p) * (c.forward[stage]! + c.backward[stage]!);
          }
        }
        // Both are sums of the same times in different orders.
        expect(r.compute / computed).toBeCloseTo(1, 9);
      });
      expect(bubble).toBeGreaterThanOrEqual(0);
      expect(bubble + exposedCommunication).toBeLessThan(1);
    }),
    { numRuns: 40 },
  );
});

test("one pipeline stands for all: simulating every rank gives the same step", () => {
  fc.assert(
    fc.property(shapes, (p) => {
      const o = { model, plan: p, cluster: cluster(8) };
      const whole = simulateStep({ ...o, unfold: true });
      expect(statistics(whole.timeline).ranks).toHaveLength(p.tp * p.dp * p.pp);
      expect(whole.step).toBe(simulateStep(o).step);
    }),
    { numRuns: 20 },
  );
});

test("a hybrid's stages differ, and its step is near the closed form of the same costs", () => {
  const hybrid = defineModel({
    layers: 24,
    hidden: 1024,
    heads: 16,
    vocab: 32_000,
    context: 2048,
    pattern: "MEM*E-",
    mamba: { heads: 32, headDim: 64, stateDim: 128, groups: 8 },
    experts: { count: 16, active: 2, sharedFfn: 1024 },
  });
  for (const [pp, vpp] of [
    [2, 1],
    [4, 1],
    [4, 2],
  ] as const) {
    const p = definePlan(hybrid, { pp, vpp, dp: 8, ep: 8, globalBatch: 256, sequence: 2048 });
    const o = { model: hybrid, plan: p, cluster: cluster(8) };
    const { forward } = stepCosts(o);
    // Three stages of four: MEM, *E-, MEM again; alike where each has all letters as often.
    expect(new Set(forward).size).toBeGreaterThan(pp === 2 ? 1 : 2);
    const priced = estimate({ ...o, checkMemory: false });
    if (!priced.ok) throw new Error(priced.reason);
    // What the closed form leaves out: stages that wait for one another by turns.
    expect(Math.abs(simulateStep(o).step / priced.step - 1)).toBeLessThan(0.06);
  }
});

/** The same step with all communication taking half the time. */
function halved(step: StepDescription): StepDescription {
  const half = (c: TimedCollective): TimedCollective => ({ ...c, duration: c.duration / 2 });
  const halves = (list: readonly (readonly TimedCollective[])[]): TimedCollective[][] =>
    list.map((each) => each.map(half));
  const parts = (list: readonly Part[]): Part[] =>
    list.map((part) =>
      Object.assign({}, part, { hidden: part.hidden.map(half), exposed: part.exposed.map(half) }),
    );
  const { sync } = step;
  return {
    ...step,
    parts: step.parts.map((p) => ({ F: parts(p.F), B: parts(p.B), I: parts(p.I), W: parts(p.W) })),
    transfer: (from, to) => {
      const { duration, latency, bytes, lane } = step.transfer(from, to);
      return { duration: duration / 2, latency: latency / 2, bytes, lane };
    },
    sync: {
      ...sync,
      reduce: halves(sync.reduce),
      gather: halves(sync.gather),
      common: halves(sync.common),
      ...(sync.tied === undefined
        ? {}
        : { tied: { ...sync.tied, duration: sync.tied.duration / 2 } }),
    },
  };
}

test("communication in half the time is never slower, and overlap never either", () => {
  fc.assert(
    fc.property(shapes, (p) => {
      const o = { model, plan: p, cluster: cluster(8) };
      const { step } = simulateStep(o);
      const slack = 1 + 1e-12;
      const faster = play(stepProgram(halved(simulatedStep(o).description)));
      expect(statistics(faster).makespan).toBeLessThanOrEqual(step * slack);
      const overlapped: Plan = { ...p, overlapPointToPoint: true };
      expect(simulateStep({ ...o, plan: overlapped }).step).toBeLessThanOrEqual(step * slack);
      // With twice the bandwidth, NCCL's tuner may choose a protocol that is a hair slower.
      const wide = simulateStep({ ...o, cluster: cluster(8, 2) }).step;
      expect(wide).toBeLessThanOrEqual(step * 1.01);
    }),
    { numRuns: 40 },
  );
});

test("gradients reduced behind the backward cost less than after it", () => {
  for (const zero of [0, 1] as const) {
    const step = (overlapDataParallel: boolean): number =>
      simulateStep({
        model,
        plan: plan({ dp: 64, zero, overlapDataParallel }),
        cluster: cluster(8),
      }).step;
    expect(step(true)).toBeLessThan(step(false));
  }
});

test("a rank that holds both copies of a stage sums their gradients where they are", () => {
  for (const pp of [1, 3]) {
    const o = { model, plan: plan({ pp, schedule: "chimera" }), cluster: cluster(1) };
    const [played, priced] = [simulateStep(o), estimate(o)];
    // Microbatches meet in the middle, where the closed form has a mean: within a tenth.
    expect(priced.ok && played.step / priced.step).toBeCloseTo(1, 1);
  }
});

test("four ranks on two cores run at half speed while all are busy", () => {
  const p = plan({ dp: 4, precision: "fp32", globalBatch: 4 });
  const run = (cores: number): ReturnType<typeof simulateStep> =>
    simulateStep({ model, plan: p, cluster: machine(cores), pricer: flat });
  const [two, four] = [run(2), run(4)];
  expect([two.folded, four.folded]).toEqual([false, true]);
  expect(statistics(two.timeline).ranks).toHaveLength(4);
  // The collectives between differ by far less than the computing: links are as good as infinite.
  expect(two.step / four.step).toBeCloseTo(2, 3);
  // Ranks that wait leave their core to the others: a pipeline of four loses less than half.
  const pipeline = plan({ pp: 4, precision: "fp32", globalBatch: 4 });
  const o = { model, plan: pipeline, pricer: flat };
  const slower =
    simulateStep({ ...o, cluster: machine(2) }).step /
    simulateStep({ ...o, cluster: machine(4) }).step;
  expect(slower).toBeGreaterThan(1.1);
  expect(slower).toBeLessThan(1.9);
});

test("a plan that does not fit the cluster or the device is refused or marked", () => {
  const o = { model, plan: plan({ dp: 64 }), cluster: cluster(1) };
  expect(() => simulateStep(o)).toThrow(
    "tp(1) x dp(64) x pp(1) = 64 ranks, but the cluster has 8 devices",
  );
  const split = plan({ pp: 4, vocabulary: "one-barrier" });
  expect(() => simulateStep({ ...o, plan: split })).toThrow(
    "steps with vocabulary one-barrier are not played",
  );
  const v100 = defineCluster({ host: "dgx-v100-32", hosts: 1 });
  expect(() => simulateStep({ ...o, plan: plan({}), cluster: v100 })).toThrow(
    "has no bf16 arithmetic",
  );
  const large = defineModel({
    layers: 96,
    hidden: 12_288,
    heads: 96,
    vocab: 50_257,
    context: 2048,
  });
  const alone = { model: large, plan: definePlan(large, { globalBatch: 1 }), cluster: cluster(1) };
  expect(simulateStep(alone).fits).toBe(false);
  expect(simulateStep({ ...o, plan: plan({ dp: 8 }) }).fits).toBe(true);
});
