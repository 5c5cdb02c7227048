/** Every axis and every schedule: what is folded is what is simulated in full, event by event. */
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type SimulateOptions,
  rankLayout,
  routedByTrace,
  simulateStep,
  sumStep,
} from "@trireme/simulator";
import { routingTrace } from "@trireme/moe-dispatch";
import { type Timeline, spans, statistics } from "@trireme/timeline";
import { defineCluster } from "@trireme/topology";
import {
  type Plan,
  defineModel,
  definePlan,
  pipelineSchedules,
  rankTokens,
  ranks,
} from "@trireme/workload";

const dense = defineModel({ layers: 16, hidden: 256, heads: 8, vocab: 1024, context: 256 });
const mixed = defineModel({
  layers: 8,
  hidden: 256,
  heads: 8,
  vocab: 1024,
  context: 256,
  experts: { count: 8, active: 2, ffn: 512 },
});
const cluster = defineCluster({ host: "dgx-h100", hosts: 8 });

/** What each rank did, in its order: the actions with their times, to the last bit. */
function byRank(t: Timeline): Map<number, string[]> {
  const found = new Map<number, string[]>();
  for (const { rank, action, kind, start, end } of spans(t)) {
    const list = found.get(rank);
    const text = `${start} ${end} ${kind} ${action}`;
    if (list === undefined) found.set(rank, [text]);
    else list.push(text);
  }
  // Spans that end together may be told in another order.
  for (const list of found.values()) list.sort();
  return found;
}

/** Simulates folded and unfolded, and holds every rank's events against its stand-in's. */
function expectExactFold(o: SimulateOptions): { simulated: number; ranks: number } {
  const folded = simulateStep(o);
  const whole = simulateStep({ ...o, unfold: true });
  const few = byRank(folded.timeline);
  const all = byRank(whole.timeline);
  expect(all.size).toBe(ranks(o.plan));
  for (const [rank, events] of all) expect(events).toEqual(few.get(folded.standIn[rank]!));
  expect(folded.step).toBe(whole.step);
  // Sums in another order.
  expect(folded.bubble).toBeCloseTo(whole.bubble, 9);
  expect(folded.hfu).toBeCloseTo(whole.hfu, 9);
  return { simulated: few.size, ranks: all.size };
}

/** Chunks that a schedule needs. */
function chunksOf(schedule: Plan["schedule"]): number {
  if (["zb-v", "v-half", "v-min", "dualpipe-v"].includes(schedule)) return 2;
  return ["interleaved", "dfs-bfs", "looped-bfs", "interleaved-zero-bubble"].includes(schedule)
    ? 2
    : 1;
}

test.each(pipelineSchedules)("schedule %s runs on every axis, and folds exactly", (schedule) => {
  const plan = definePlan(dense, {
    tp: 2,
    cp: 2,
    dp: 2,
    pp: 4,
    vpp: chunksOf(schedule),
    schedule,
    globalBatch: 16,
    sequenceParallel: true,
    zero: 1,
    overlapDataParallel: true,
    overlapPointToPoint: true,
  });
  const { simulated } = expectExactFold({ model: dense, plan, cluster });
  expect(simulated).toBe(4);
});

const plans = fc
  .record({
    tp: fc.constantFrom(1, 2),
    cp: fc.constantFrom(1, 2),
    dp: fc.constantFrom(1, 2, 4),
    pp: fc.constantFrom(1, 2, 4),
    ep: fc.constantFrom(1, 2, 4),
    zero: fc.constantFrom(0 as const, 1 as const, 2 as const, 3 as const),
    recompute: fc.constantFrom("none" as const, "selective" as const, "full" as const),
    dispatch: fc.constantFrom("all-to-all" as const, "all-gather" as const),
    overlapDataParallel: fc.boolean(),
    overlapTensorParallel: fc.boolean(),
    overlapPointToPoint: fc.boolean(),
    overlapExpertParallel: fc.boolean(),
    order: fc.constantFrom(
      ["tp", "cp", "dp", "pp"] as const,
      ["pp", "dp", "cp", "tp"] as const,
      ["cp", "tp", "dp", "pp"] as const,
    ),
  })
  .filter((o) => (o.tp * o.cp * o.dp) % o.ep === 0)
  .map((o) => definePlan(mixed, { ...o, etp: 1, globalBatch: 16, sequenceParallel: o.tp > 1 }));

test("experts, context and any order of axes fold exactly", () => {
  fc.assert(
    fc.property(plans, (plan) => {
      expectExactFold({ model: mixed, plan, cluster });
    }),
    { numRuns: 25 },
  );
});

test("a straggler, slow loading and uneven routes unfold what they reach, exactly", () => {
  const plan = definePlan(mixed, {
    tp: 2,
    dp: 4,
    pp: 2,
    ep: 4,
    etp: 1,
    globalBatch: 16,
    sequenceParallel: true,
    overlapDataParallel: true,
  });
  const o = { model: mixed, plan, cluster };
  const slow = (rank: number): number => (rank === 3 ? 0.8 : 1);
  expectExactFold({ ...o, speed: slow });
  // Per stage: the straggler, its tensor-parallel neighbour, its replicas, and theirs.
  const few = expectExactFold({ ...o, plan: { ...plan, ep: 1 }, speed: slow });
  expect(few).toEqual({ simulated: 8, ranks: 16 });
  expectExactFold({ ...o, loading: (rank) => (rank < 2 ? 1e-3 : 0) });
  const trace = routingTrace({
    experts: 8,
    topK: 2,
    tokens: 4 * rankTokens(plan),
    seed: 1,
    zipf: 1,
  });
  const routing = routedByTrace(trace, { model: mixed, plan });
  const even = simulateStep(o);
  const uneven = simulateStep({ ...o, routing });
  expect(uneven.step).toBeGreaterThan(even.step);
  expectExactFold({ ...o, routing });
});

test("one slow GPU of 12,288 makes 32 kinds of ranks, not 12,288", () => {
  const gpt = defineModel({ layers: 16, hidden: 512, heads: 8, vocab: 1024, context: 256 });
  const plan = definePlan(gpt, { tp: 8, pp: 8, dp: 192, globalBatch: 384 });
  const big = defineCluster({ host: "dgx-a100-80", hosts: 1536 });
  const { standIn, step } = sumStep({
    model: gpt,
    plan,
    cluster: big,
    speed: (rank) => (rank === 777 ? 0.5 : 1),
  });
  expect(new Set(standIn).size).toBe(32);
  expect(step).toBeGreaterThan(sumStep({ model: gpt, plan, cluster: big }).step);
});

test("a straggler delays all that wait for it, and nobody before they do", () => {
  const plan = definePlan(dense, { dp: 2, pp: 4, globalBatch: 8, overlapPointToPoint: true });
  const o = { model: dense, plan, cluster, unfold: true };
  const slow = 5;
  const layout = rankLayout(plan);
  const even = simulateStep(o).timeline;
  const late = simulateStep({ ...o, speed: (rank: number) => (rank === slow ? 0.5 : 1) }).timeline;
  const startsOf = (t: Timeline): Map<string, number> =>
    new Map([...spans(t)].map((s) => [`${s.rank} ${s.lane} ${s.action}`, s.start]));
  const [before, after] = [startsOf(even), startsOf(late)];
  const moved = new Set<number>();
  for (const [key, start] of before) {
    const now = after.get(key)!;
    expect(now).toBeGreaterThanOrEqual(start);
    const rank = Number(key.split(" ")[0]);
    const sync = key.includes("REDUCE_GRAD") || key.includes("optimizer");
    if (now > start && !sync) moved.add(layout.replica[rank]!);
  }
  // The other replica meets the straggler at the gradients, not before.
  expect([...moved]).toEqual([layout.replica[slow]!]);
});

test("sums are the statistics of the timeline", () => {
  fc.assert(
    fc.property(plans, (plan) => {
      const o = { model: mixed, plan, cluster, loading: 1e-3 };
      const sums = sumStep(o);
      const full = simulateStep(o);
      expect(sums.step).toBe(full.step);
      for (const { rank, compute, exposedCommunication, other, idle } of statistics(full.timeline)
        .ranks) {
        const own = sums.rank(rank);
        // Both add the same intervals up in different orders.
        expect(own.compute).toBeCloseTo(compute, 12);
        expect(own.exposedCommunication).toBeCloseTo(exposedCommunication, 12);
        expect(own.other).toBeCloseTo(other, 12);
        expect(own.idle).toBeCloseTo(idle, 12);
      }
      expect(sums.bubble).toBeCloseTo(full.bubble, 9);
      expect(sums.utilisation).toEqual(full.utilisation);
      expect(sums.lanes.inter.bytes).toBeCloseTo(full.lanes.inter.bytes, 3);
    }),
    { numRuns: 15 },
  );
});
