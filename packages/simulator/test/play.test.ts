import fc from "fast-check";
import { expect, test } from "vitest";
import { actionsOf, createSchedule, lower, printAction, replay } from "@trireme/schedulers";
import {
  type Part,
  Program,
  type StepDescription,
  play,
  rankLayout,
  stepProgram,
  unfolded,
} from "@trireme/simulator";
import { spans, statistics } from "@trireme/timeline";
import { defineModel, definePlan } from "@trireme/workload";

const pipeline = fc
  .record({
    name: fc.constantFrom("gpipe", "1f1b", "interleaved"),
    ranks: fc.integer({ min: 1, max: 5 }),
    chunks: fc.integer({ min: 1, max: 3 }),
    groups: fc.integer({ min: 1, max: 3 }),
    costs: fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 30, maxLength: 30 }),
  })
  .map(({ name, ranks, chunks, groups, costs }) => {
    const shape = {
      ranks,
      chunks: name === "interleaved" ? chunks : 1,
      microbatches: ranks * groups,
    };
    return { schedule: lower(createSchedule(name, shape)), costs };
  });

function part(kind: Part["kind"], duration: number): Part {
  return { kind, duration, flops: 0, hidden: [], exposed: [], attention: 0, experts: 0 };
}

const model = defineModel({ layers: 64, hidden: 64, heads: 1, vocab: 256, context: 32 });

/** A step without data parallelism whose messages take `time`, all of it latency. */
function describe(
  schedule: StepDescription["schedule"],
  forward: (stage: number) => number,
  backward: (stage: number) => number,
  time: number,
  blockingSends: boolean,
): StepDescription {
  const none = Array.from({ length: schedule.stages }, () => []);
  const layout = rankLayout(definePlan(model, { pp: schedule.ranks, globalBatch: 1 }));
  return {
    schedule,
    ranks: unfolded(layout),
    layers: none.map(() => 1),
    parts: none.map((_, stage) => ({
      F: [part("forward", forward(stage))],
      B: [part("backward", backward(stage))],
      I: [],
      W: [],
    })),
    transfer: () => ({ duration: 0, latency: time, bytes: 1, lane: "inter" }),
    blockingSends,
    sync: {
      overlap: false,
      reduce: none,
      gather: none,
      common: none,
      mirror: none.map(() => undefined),
      optimizer: new Float64Array(schedule.ranks),
      optimizerLane: "compute",
    },
  };
}

test("a step without communication is exactly the schedule's replay", () => {
  fc.assert(
    fc.property(pipeline, ({ schedule, costs }) => {
      const forward = (stage: number): number => costs[stage]!;
      const backward = (stage: number): number => costs[15 + stage]!;
      const t = play(stepProgram(describe(schedule, forward, backward, 0, false)));
      const { makespan, starts, busy } = replay(schedule, { forward, backward });
      const computed = [...spans(t)].filter((each) => each.lane === "compute");
      for (let rank = 0; rank < schedule.ranks; rank++) {
        const own = computed.filter((each) => each.rank === rank);
        const first = schedule.offsets[rank]!;
        const expected = actionsOf(schedule, rank)
          .map((action, i) => ({ action, start: starts[first + i]! }))
          .filter(({ action }) => action.kind === "F" || action.kind === "B");
        expect(own.map((each) => [each.action, each.start])).toEqual(
          expected.map(({ action, start }) => [printAction(action), start]),
        );
      }
      const s = statistics(t);
      expect(s.end).toBe(makespan);
      expect(s.start).toBe(0);
      expect(s.ranks.map((r) => r.compute)).toEqual([...busy]);
    }),
  );
});

test("with messages that take time, sends beside and between computing are the replay's", () => {
  fc.assert(
    fc.property(pipeline, fc.integer({ min: 1, max: 5 }), fc.boolean(), (p, time, coupled) => {
      const { schedule, costs } = p;
      const forward = (stage: number): number => costs[stage]!;
      const backward = (stage: number): number => costs[15 + stage]!;
      const t = play(stepProgram(describe(schedule, forward, backward, time, coupled)));
      const { starts, ends } = replay(schedule, {
        forward,
        backward,
        pointToPoint: time,
        communication: coupled ? "coupled" : "decoupled",
      });
      const computed = [...spans(t)].filter((each) => each.lane === "compute");
      expect(computed.length).toBe(2 * schedule.stages * schedule.microbatches);
      for (let rank = 0; rank < schedule.ranks; rank++) {
        const own = new Map(
          computed.filter((each) => each.rank === rank).map((each) => [each.action, each]),
        );
        actionsOf(schedule, rank).forEach((action, i) => {
          if (action.kind !== "F" && action.kind !== "B") return;
          const at = schedule.offsets[rank]! + i;
          const found = own.get(printAction(action))!;
          expect([found.start, found.end]).toEqual([starts[at], ends[at]]);
        });
      }
    }),
  );
});

test("spans know what they waited for: a receive its send, an action its receive", () => {
  const schedule = lower(createSchedule("1f1b", { ranks: 2, microbatches: 2 }));
  const t = play(
    stepProgram(
      describe(
        schedule,
        () => 2,
        () => 4,
        1,
        false,
      ),
    ),
  );
  const all = [...spans(t)];
  const parents = (action: string): string[] =>
    all.find((each) => each.action === action)!.parents.map((i) => all[i]!.action);
  expect(parents("0SEND_F1")).toEqual(["0F1"]);
  expect(parents("1RECV_F1")).toEqual(["0SEND_F1"]);
  expect(parents("1F1")).toEqual(["1RECV_F1"]);
  for (const each of all) {
    for (const i of each.parents) expect(all[i]!.end).toBeLessThanOrEqual(each.end);
  }
});

const label = { kind: "all-reduce", lane: "inter", action: "sum" } as const;
const work = { kind: "forward", lane: "compute", action: "0F0" } as const;

test("a collective starts when its last member comes and ends for all at once", () => {
  const p = new Program(3);
  const name = p.label(work);
  const all = p.group([0, 1, 2]);
  const sum = p.collective({ group: all, stream: 0, duration: 5, label: p.label(label) });
  [1, 4, 2].forEach((time, rank) => {
    p.compute(rank, p.work(time, name));
    p.enter(rank, sum, true);
    p.compute(rank, p.work(1, name));
  });
  const t = play(p);
  const sums = [...spans(t)].filter((each) => each.action === "sum");
  expect(sums.map((each) => [each.start, each.end])).toEqual([
    [4, 9],
    [4, 9],
    [4, 9],
  ]);
  expect(statistics(t).makespan).toBe(10);
});

/** Makespan of two collectives of 3 s of one rank, on streams 0 and `second`. */
function twoCollectives(second: number): number {
  const p = new Program(1);
  const [group, name] = [p.group([0]), p.label(label)];
  const ids = [0, second].map((stream) =>
    p.collective({ group, stream, duration: 3, label: name }),
  );
  for (const id of ids) p.enter(0, id, false);
  for (const id of ids) p.await(0, id);
  return statistics(play(p)).makespan;
}

test("collectives of a stream run in order, those of two streams side by side", () => {
  expect(twoCollectives(0)).toBe(6);
  expect(twoCollectives(1)).toBe(3);
});

test("messages leave one after the other, while latency overlaps", () => {
  const p = new Program(2);
  const message = { from: 0, to: 1, duration: 2, latency: 10 };
  const ends = {
    send: p.label({ ...label, action: "send" }),
    receive: p.label({ ...label, action: "receive" }),
  };
  const ids = [0, 1, 2].map(() => p.message({ ...message, ...ends }));
  for (const id of ids) p.send(id, false);
  for (const id of ids) p.receive(id);
  const got = [...spans(play(p))].filter((each) => each.action === "receive");
  expect(got.map((each) => [each.start, each.end])).toEqual([
    [0, 12],
    [2, 14],
    [4, 16],
  ]);
});

test("ranks that share a list do what each of them would by itself", () => {
  const build = (shared: boolean): Program => {
    const p = new Program(6);
    const name = p.label(work);
    const ends = [p.label({ ...label, action: "send" }), p.label({ ...label, action: "receive" })];
    const groups = [p.group([0, 1]), p.group([2, 3]), p.group([4, 5])];
    const sum = p.collectiveRow({ groups, stream: 0, duration: 2, label: p.label(label) });
    const all = (value: number): number[] => Array.from({ length: 6 }, () => value);
    const ring = p.messageRow({
      from: [0, 1, 2, 3, 4, 5],
      to: [1, 2, 3, 4, 5, 0],
      duration: [1, 1, 3, 1, 1, 1],
      latency: all(0.5),
      send: all(ends[0]!),
      receive: all(ends[1]!),
    });
    const own = p.shift([0, 1, 2, 3, 4, 5]);
    const previous = p.shift([5, 0, 1, 2, 3, 4]);
    const pair = p.shift([0, 0, 1, 1, 2, 2]);
    // Written for the middle one, so that moves go both ways.
    for (const rank of shared ? [3] : [0, 1, 2, 3, 4, 5]) {
      p.compute(rank, p.work(2, name));
      p.send(ring + rank, false, own);
      p.enter(rank, sum + Math.floor(rank / 2), false, pair);
      p.receive(ring + ((rank + 5) % 6), previous);
      p.await(rank, sum + Math.floor(rank / 2), pair);
      p.compute(rank, p.work(1, name));
    }
    if (shared) for (const rank of [0, 1, 2, 4, 5]) p.share(rank, 3);
    return p;
  };
  const [together, apart] = [play(build(true)), play(build(false))];
  expect([...spans(together)]).toEqual([...spans(apart)]);
  expect(statistics(together).makespan).toBe(6.5);
  const p = build(true);
  expect(() => p.share(2, 3)).toThrow("rank 2 has instructions of its own");
  expect(() => p.shift([1, 2])).toThrow("moves 2 ranks; give a move for each of 6");
});

test("a wait that never ends names the rank and what it waits for", () => {
  const lost = new Program(2);
  const ends = {
    send: lost.label({ ...label, action: "0SEND_F0" }),
    receive: lost.label({ ...label, action: "1RECV_F0" }),
  };
  lost.receive(lost.message({ from: 0, to: 1, duration: 0, latency: 0, ...ends }));
  expect(() => play(lost, { rankOf: [8, 9] })).toThrow(
    "rank 9 waits for 1RECV_F0 from rank 8, which never sends it",
  );

  const alone = new Program(2);
  const both = alone.group([0, 1]);
  const sum = alone.collective({ group: both, stream: 0, duration: 1, label: alone.label(label) });
  alone.enter(0, sum, true);
  expect(() => play(alone)).toThrow(
    "rank 0 waits for sum, which never starts on all of its 2 ranks",
  );
});

test("ranks that wait for each other in a circle are named with what each waits for", () => {
  const crossed = new Program(2);
  const group = crossed.group([0, 1]);
  const [a, b] = ["a", "b"].map((action) =>
    crossed.collective({
      group,
      stream: 0,
      duration: 1,
      label: crossed.label({ ...label, action }),
    }),
  );
  for (const [rank, id] of [
    [0, a],
    [0, b],
    [1, b],
    [1, a],
  ] as const)
    crossed.enter(rank, id!, true);
  expect(() => play(crossed)).toThrow(
    "rank 0 waits for a, rank 1 waits for b: each waits for the next, in a circle",
  );
});

test("times that are no times, unknown ranks and ranks twice in a group are refused", () => {
  const p = new Program(2);
  expect(() => p.work(Number.NaN, p.label(work))).toThrow("0F0 takes NaN s");
  expect(() => p.group([0, 2])).toThrow("rank 2 of a group is not in 0..1");
  expect(() => p.group([1, 1])).toThrow("each once");
  expect(() => new Program(0)).toThrow("program of 0 ranks");
});

test("ranks that share cores run at the speed that is left to them", () => {
  const p = new Program(4);
  const three = p.work(3, p.label(work));
  for (let rank = 0; rank < 4; rank++) p.compute(rank, three);
  const shared = [{ cores: 2, ranks: [0, 1, 2, 3] }];
  expect(statistics(play(p, { shared })).makespan).toBe(6);
  expect(statistics(play(p, { shared: [{ cores: 4, ranks: [0, 1, 2, 3] }] })).makespan).toBe(3);
});
