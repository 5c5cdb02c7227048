import fc from "fast-check";
import {
  type Label,
  type MessageRow,
  Program,
  type SharedNetwork,
  type SimulateOptions,
  play,
  programNetwork,
  simulateFlows,
  simulateStep,
  sumStep,
} from "@trireme/simulator";
import { spans, statistics } from "@trireme/timeline";
import { defineCluster, linkBetween, megascaleFabric } from "@trireme/topology";
import { defineModel, definePlan } from "@trireme/workload";
import { expect, test } from "vitest";

const work = { kind: "forward", lane: "compute", action: "F" } as const;
const sum = { kind: "all-reduce", lane: "inter", action: "sum" } as const;
const label = (kind: "send" | "receive", bytes: number): Label => ({
  kind,
  lane: "inter",
  action: kind,
  bytes,
});

const cluster = defineCluster({
  host: "dgx-h100",
  hosts: 4,
  fabric: megascaleFabric({ hosts: 4 }),
});

const traffic = fc.uniqueArray(
  fc.record({
    from: fc.integer({ min: 0, max: 15 }),
    to: fc.integer({ min: 16, max: 31 }),
    megabytes: fc.integer({ min: 1, max: 500 }),
    start: fc.integer({ min: 0, max: 10 }),
  }),
  { selector: ({ from }) => from, minLength: 1, maxLength: 12 },
);

test("messages that share links take what flows at max-min rates take", () => {
  fc.assert(
    fc.property(traffic, (list) => {
      const program = new Program(cluster.devices);
      const name = program.label(work);
      const flows = list.map(({ from, to, megabytes, start }) => ({
        from,
        to,
        bytes: megabytes * 1e6,
        start: start / 1e3,
      }));
      for (const { from, to, bytes, start } of flows) {
        const { bandwidth, latency } = linkBetween(cluster, from, to);
        const ends = {
          send: program.label(label("send", bytes)),
          receive: program.label(label("receive", bytes)),
        };
        if (start > 0) program.compute(from, program.work(start, name));
        program.send(
          program.message({ from, to, duration: bytes / bandwidth, latency, ...ends }),
          false,
        );
      }
      const network = programNetwork({ cluster, program });
      const sent = [...spans(play(program, { network }))].filter((s) => s.kind === "send");
      const { ends } = simulateFlows({ cluster, flows });
      expect(sent).toHaveLength(flows.length);
      for (const { rank, end } of sent) {
        const i = flows.findIndex(({ from }) => from === rank);
        // Rounding of rates and of what is left.
        expect(Math.abs(end / ends[i]! - 1)).toBeLessThan(1e-6);
      }
    }),
    { numRuns: 50 },
  );
});

/** One link, over which everything goes. */
function oneLink(capacity: number, rate: number): SharedNetwork {
  const route = { links: [0], weights: [1], rate };
  return { capacities: [capacity], message: () => route, collective: () => route };
}

/** Two sums of 6 s of two pairs of ranks; the second pair comes `after` the first. */
function twoSums(after: number, network: SharedNetwork): number[] {
  const p = new Program(4);
  const groups = [p.group([0, 1]), p.group([2, 3])];
  const sums = p.collectiveRow({ groups, stream: 0, duration: 6, label: p.label(sum) });
  for (const rank of [0, 1, 2, 3]) {
    if (rank > 1) p.compute(rank, p.work(after, p.label(work)));
    p.enter(rank, sums + (rank >> 1), true);
  }
  const ends = [...spans(play(p, { network }))].filter((s) => s.action === "sum");
  return [0, 2].map((rank) => ends.find((s) => s.rank === rank)!.end);
}

test("collectives on one link share it while both are under way, and only if it is too narrow", () => {
  // Both at half speed from 2 s on: the first has 4 s left, done at 10 s; the second then 2 s more.
  expect(twoSums(2, oneLink(1, 1))).toEqual([10, 12]);
  expect(twoSums(2, oneLink(2, 1))).toEqual([6, 8]);
  expect(twoSums(6, oneLink(1, 1))).toEqual([6, 12]);
  // Of a link of 3, each that would take 2 alone has three quarters of it.
  expect(twoSums(0, oneLink(3, 2))).toEqual([8, 8]);
});

test("messages of a rank still leave one after the other", () => {
  const p = new Program(3);
  const row: MessageRow = {
    from: [0, 0, 1],
    to: [2, 2, 2],
    duration: [3, 3, 3],
    latency: [1, 1, 1],
    send: [0, 0, 0].map(() => p.label(label("send", 3))),
    receive: [0, 0, 0].map(() => p.label(label("receive", 3))),
  };
  const first = p.messageRow(row);
  for (const i of [0, 1, 2]) p.send(first + i, false);
  const sent = [...spans(play(p, { network: oneLink(1, 1) }))].filter((s) => s.kind === "send");
  expect(sent.map(({ rank, start, end }) => [rank, start, end])).toEqual([
    [0, 0, 7],
    [1, 0, 7],
    [0, 6, 10],
  ]);
});

const model = defineModel({ layers: 8, hidden: 1024, heads: 16, vocab: 4096, context: 1024 });

function bothWays(o: Omit<SimulateOptions, "model" | "cluster">): SimulateOptions[] {
  const all = { ...o, model, cluster, unfold: true };
  return [all, { ...all, network: "shared" }];
}

test("where nothing is shared, every span is what it is with ways of its own, to the last bit", () => {
  for (const options of [
    { pp: 4, tp: 8, globalBatch: 16, sequenceParallel: true },
    { pp: 4, tp: 8, globalBatch: 16, overlapPointToPoint: true },
    { dp: 32, globalBatch: 64, zero: 1, overlapDataParallel: true } as const,
    { dp: 8, tp: 4, globalBatch: 32, zero: 2 } as const,
  ]) {
    const [own, shared] = bothWays({ plan: definePlan(model, options) }).map((o) => {
      const { timeline, step } = simulateStep(o);
      const list = [...spans(timeline)].map((s) => `${s.rank} ${s.action} ${s.start} ${s.end}`);
      return { step, list: list.sort() };
    });
    expect(shared).toEqual(own);
  }
});

test("what shares NICs is slower, nothing is faster, and all that travels still does", () => {
  const narrow = defineCluster({ host: "dgx-a100-80", hosts: 4 });
  const plan = definePlan(model, {
    tp: 8,
    dp: 2,
    pp: 2,
    vpp: 4,
    schedule: "interleaved",
    globalBatch: 16,
    zero: 1,
    overlapDataParallel: true,
    overlapPointToPoint: true,
  });
  const [own, shared] = bothWays({ plan }).map((o) => sumStep({ ...o, cluster: narrow }));
  expect(shared!.step).toBeGreaterThan(own!.step);
  expect(shared!.step).toBeLessThan(1.5 * own!.step);
  expect(shared!.lanes.inter.bytes).toBe(own!.lanes.inter.bytes);
  expect(shared!.folded).toBe(false);
});

test("a step on shared links keeps its account", () => {
  const plan = definePlan(model, {
    tp: 2,
    cp: 4,
    dp: 4,
    globalBatch: 16,
    overlapDataParallel: true,
    sequenceParallel: true,
  });
  const { timeline } = simulateStep({ model, plan, cluster, network: "shared" });
  const { makespan, ranks } = statistics(timeline);
  expect(ranks).toHaveLength(32);
  for (const { compute, exposedCommunication, other, idle } of ranks) {
    expect(compute + exposedCommunication + other + idle).toBeCloseTo(makespan, 9);
  }
});
