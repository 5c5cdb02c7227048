/** What a step tells beside its time: memory through it, files, kernels, utilisation; and what varies. */
import { expect, test } from "vitest";
import { estimate, stepCosts } from "@trireme/cost-model";
import { pack } from "@trireme/dataloader";
import { createSchedule, replay } from "@trireme/schedulers";
import {
  StreamRecorder,
  memoryOverTime,
  packedLengths,
  playInto,
  simulateStep,
  simulatedStep,
  sumStep,
} from "@trireme/simulator";
import { decodeTimeline, statistics } from "@trireme/timeline";
import { defineCluster } from "@trireme/topology";
import {
  type Plan,
  defineModel,
  definePlan,
  microbatches,
  pipelineSchedules,
} from "@trireme/workload";

const model = defineModel({ layers: 16, hidden: 1024, heads: 16, vocab: 4096, context: 1024 });
const cluster = defineCluster({ host: "dgx-h100", hosts: 8 });
const plan = (o: Partial<Plan>): Plan => definePlan(model, { globalBatch: 32, ...o });

const twofold = new Set<string>(["zb-v", "v-half", "v-min", "dualpipe-v"]);
const looped = new Set<string>(["interleaved", "dfs-bfs", "looped-bfs", "interleaved-zero-bubble"]);

test.each(pipelineSchedules)(
  "%s with costless communication is the schedule's replay",
  (schedule) => {
    const vpp = twofold.has(schedule) || looped.has(schedule) ? 2 : 1;
    const p = plan({ pp: 4, vpp, schedule, globalBatch: 16 });
    const o = { model, plan: p, cluster, pricer: { operator: () => 2 ** -10 } };
    const costs = stepCosts(o);
    const { description } = simulatedStep(o);
    const chain = description.schedule.stages / description.schedule.directions;
    const { makespan, busy } = replay(
      createSchedule(schedule, {
        ranks: 4,
        ...(vpp > 1 ? { chunks: vpp } : {}),
        microbatches: microbatches(p),
      }),
      {
        forward: (s) => costs.forward[s % chain]!,
        inputGradient: (s) => costs.inputGradient[s % chain]!,
        weightGradient: (s) => costs.weightGradient[s % chain]!,
      },
    );
    const { timeline } = simulateStep(o);
    const compute = statistics(timeline).ranks.map((r) => r.compute);
    // The update comes on top; sums in another order.
    const update = description.sync.optimizer;
    compute.forEach((time, p2) => expect(time - update[p2]!).toBeCloseTo(busy[p2]!, 12));
    let last = 0;
    for (let i = 0; i < timeline.length; i++) {
      const kind = timeline.actions[timeline.action[i]!]!;
      if (/^\d+[FBIW]\d+$/.test(kind)) last = Math.max(last, timeline.end[i]!);
    }
    // Sends take microseconds here, and a chain of them is in the path.
    expect(last).toBeGreaterThanOrEqual(makespan);
    expect(last / makespan).toBeLessThan(1.05);
  },
);

test("where both are exact, the step is the cost model's estimate within 0.1 %", () => {
  for (const o of [
    {},
    { tp: 4, sequenceParallel: true },
    { dp: 4, zero: 1 as const },
    { tp: 2, dp: 4, recompute: "full" as const },
    { cp: 2, dp: 2 },
    { pp: 4, overlapPointToPoint: true, globalBatch: 64 },
    { pp: 4, tp: 2, overlapPointToPoint: true, globalBatch: 64, schedule: "gpipe" as const },
  ]) {
    const p = plan(o);
    const predicted = estimate({ model, plan: p, cluster });
    const simulated = simulateStep({ model, plan: p, cluster });
    if (!predicted.ok) throw new Error(predicted.reason);
    expect(Math.abs(simulated.step / predicted.step - 1)).toBeLessThan(0.001);
  }
});

test("an embedding and a head alone on their stages take the step that the cost model estimates", () => {
  const ends = { accountForEmbedding: true, accountForLoss: true };
  for (const o of [
    { pp: 4, stageLayers: [0, 7, 9, 0] },
    { pp: 6, ...ends },
    { pp: 6, vpp: 3, ...ends },
    { pp: 3, vpp: 6, ...ends },
  ]) {
    const p = plan({ overlapPointToPoint: true, globalBatch: 66, ...o });
    const predicted = estimate({ model, plan: p, cluster });
    const simulated = simulateStep({ model, plan: p, cluster });
    if (!predicted.ok) throw new Error(predicted.reason);
    // Between stages of like length a message has nothing to hide behind: 0.6 % at most here.
    expect(Math.abs(simulated.step / predicted.step - 1)).toBeLessThan(0.01);
  }
});

test("memory rises and falls with the microbatches in flight, to the memory model's peak", () => {
  const p = plan({ pp: 4, globalBatch: 32 });
  const o = { model, plan: p, cluster };
  const simulation = simulateStep(o);
  const all = memoryOverTime(o, simulation);
  expect(all.map((each) => each.rank)).toEqual([0, 1, 2, 3]);
  for (const { rank, bytes, peak } of all) {
    // 1F1B holds pp - rank microbatches, as the closed form says.
    expect(peak / simulation.memory.ranks[rank]!.total).toBeCloseTo(1, 2);
    expect(bytes.at(-1)).toBeCloseTo(Math.min(...bytes), 0);
  }
  const gpipe = { ...o, plan: { ...p, schedule: "gpipe" as const } };
  expect(memoryOverTime(gpipe, simulateStep(gpipe))[3]!.peak).toBeGreaterThan(all[3]!.peak);
});

test("a step at the grain of kernels takes the same time and has the same FLOPs", () => {
  const p = plan({ tp: 2, pp: 2, vpp: 2, sequenceParallel: true });
  const coarse = simulateStep({ model, plan: p, cluster });
  const fine = simulateStep({ model, plan: p, cluster, grain: "operator" });
  // Sums of more terms: rounding.
  expect(fine.step / coarse.step).toBeCloseTo(1, 9);
  expect(fine.hfu / coarse.hfu).toBeCloseTo(1, 9);
  expect(fine.timeline.length).toBeGreaterThan(5 * coarse.timeline.length);
  expect(fine.timeline.actions.some((name) => name.startsWith("attention/"))).toBe(true);
});

test("a streamed file holds every span", () => {
  const p = plan({ pp: 4, dp: 8, globalBatch: 64 });
  const o = { model, plan: p, cluster, unfold: true };
  const { timeline } = simulateStep(o);
  const prepared = simulatedStep(o);
  const parts: Uint8Array[] = [];
  const recorder = new StreamRecorder(prepared.program.labels, (bytes) => parts.push(bytes), {
    rankOf: prepared.ranks.rankOf,
  });
  playInto(prepared.program, recorder, prepared.play);
  recorder.finish();
  const file = new Uint8Array(Buffer.concat(parts));
  const back = decodeTimeline(file);
  expect(back.length).toBe(timeline.length);
  expect(statistics(back)).toEqual(statistics(timeline));
});

test("recomputation shows in hardware utilisation, not in model utilisation per second", () => {
  const o = { model, cluster };
  const none = simulateStep({ ...o, plan: plan({}) });
  const full = simulateStep({ ...o, plan: plan({ recompute: "full" }) });
  expect(full.hfu / full.mfu).toBeGreaterThan(1.2 * (none.hfu / none.mfu));
  expect(none.utilisation["model-causal"]).toBeLessThan(none.utilisation["model-full"]);
  expect(none.hfu).toBeLessThan(1);
});

test("short documents take less attention than one long one, and only where they are", () => {
  const p = plan({ dp: 4, globalBatch: 16, sequence: 1024 });
  const lengths = Array.from({ length: 64 }, (_, i) => (i < 16 ? 1024 : 256));
  const packing = pack({ lengths, capacity: 1024, method: "concatenate" });
  const packed = packedLengths(packing, { ...p, globalBatch: 16 });
  const o = { model, plan: p, cluster };
  const long = simulateStep(o);
  const same = simulateStep({ ...o, lengths: packed });
  // The first 16 rows are single documents: all as if nothing were packed.
  expect(same.step).toBeCloseTo(long.step, 12);
  const short = simulateStep({ ...o, lengths: (replica) => (replica === 0 ? [1024] : [512, 512]) });
  expect(short.step).toBeCloseTo(long.step, 12);
  const all = simulateStep({ ...o, lengths: () => [512, 512] });
  expect(all.step).toBeLessThan(long.step);
  expect(() => simulateStep({ ...o, lengths: () => [1025] })).toThrow("1025 tokens");
  const twice = { ...o, plan: { ...p, document: 512 }, lengths: () => [512, 512] };
  expect(() => simulateStep(twice)).toThrow("document 512 says how long documents are, and so do");
});

test("jitter is the same for the same seed, and slows a step that waits for the slowest", () => {
  const o = { model, plan: plan({ dp: 8 }), cluster };
  const steps = [1, 1, 2].map((seed) => sumStep({ ...o, jitter: { seed, deviation: 0.1 } }).step);
  expect(steps[0]).toBe(steps[1]);
  expect(steps[0]).not.toBe(steps[2]);
  expect(steps[0]).toBeGreaterThan(sumStep(o).step);
  expect(() => sumStep({ ...o, speed: () => 0 })).toThrow("speed 0 of rank 0");
});

test("multiprocessors that hidden collectives keep cost computing, none the more", () => {
  const p = plan({ tp: 4, sequenceParallel: true, overlapTensorParallel: true });
  const step = (communicationMultiprocessors?: number): number =>
    simulateStep({
      model,
      plan: p,
      cluster,
      ...(communicationMultiprocessors === undefined ? {} : { communicationMultiprocessors }),
    }).step;
  expect(step(0)).toBeLessThan(step(20));
  expect(step(20)).toBeLessThan(step(60));
  // The cost model's is 17 % of 132.
  expect(step(0.17 * 132) / step()).toBeCloseTo(1, 9);
  expect(() => step(132)).toThrow("communicationMultiprocessors 132");
});

test("busy and idle time of every lane add up to the step, and kernels of a rank take turns", () => {
  const p = plan({
    tp: 2,
    pp: 4,
    dp: 2,
    sequenceParallel: true,
    overlapDataParallel: true,
    zero: 1,
  });
  const { timeline: t, step } = simulateStep({ model, plan: p, cluster, unfold: true });
  const lanes = new Map<string, [number, number][]>();
  for (let i = 0; i < t.length; i++) {
    const key = `${t.rank[i]!} ${t.lane[i]!}`;
    const list = lanes.get(key);
    if (list === undefined) lanes.set(key, [[t.start[i]!, t.end[i]!]]);
    else list.push([t.start[i]!, t.end[i]!]);
  }
  for (const [key, list] of lanes) {
    list.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    let [busy, idle, at] = [0, 0, 0];
    for (const [start, end] of list) {
      if (key.endsWith(" 0")) expect(start).toBeGreaterThanOrEqual(at - 1e-15);
      idle += Math.max(0, start - at);
      busy += Math.max(0, end - Math.max(start, at));
      at = Math.max(at, end);
    }
    expect(busy + idle + (step - at)).toBeCloseTo(step, 12);
    expect(at).toBeLessThanOrEqual(step);
  }
});
