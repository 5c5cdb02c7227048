import fc from "fast-check";
import { expect, test } from "vitest";
import { actionsOf, createSchedule, lower, printAction, replay } from "@trireme/schedulers";
import { type Part, type StepDescription, Program, play, stepProgram } from "@trireme/simulator";
import { spans, statistics } from "@trireme/timeline";

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
  return { kind, duration, flops: 0, tensor: [], data: [] };
}

/** A step without data parallelism whose messages take `time`, all of it latency. */
function describe(
  schedule: StepDescription["schedule"],
  forward: (stage: number) => number,
  backward: (stage: number) => number,
  time: number,
  blockingSends: boolean,
): StepDescription {
  const none = Array.from({ length: schedule.stages }, () => undefined);
  return {
    schedule,
    tp: 1,
    dp: 1,
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
      pieces: none.map(() => 1),
      reduce: none,
      gather: none,
      common: none,
      optimizer: new Float64Array(schedule.ranks),
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
  const sum = p.collective({ members: [0, 1, 2], stream: 0, duration: 5, label });
  [1, 4, 2].forEach((time, rank) => {
    p.compute(rank, time, work);
    p.enter(rank, sum, true);
    p.compute(rank, 1, work);
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
  const ids = [0, second].map((stream) =>
    p.collective({ members: [0], stream, duration: 3, label }),
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
  const ends = { send: { ...label, action: "send" }, receive: { ...label, action: "receive" } };
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

test("a wait that never ends names the rank and what it waits for", () => {
  const lost = new Program(2);
  const ends = {
    send: { ...label, action: "0SEND_F0" },
    receive: { ...label, action: "1RECV_F0" },
  };
  lost.receive(lost.message({ from: 0, to: 1, duration: 0, latency: 0, ...ends }));
  expect(() => play(lost, { rankOf: [8, 9] })).toThrow("rank 9 waits for 1RECV_F0 from rank 8");

  const crossed = new Program(2);
  const [a, b] = [0, 1].map(() =>
    crossed.collective({ members: [0, 1], stream: 0, duration: 1, label }),
  );
  for (const [rank, id] of [
    [0, a],
    [0, b],
    [1, b],
    [1, a],
  ] as const)
    crossed.enter(rank, id!, true);
  expect(() => play(crossed)).toThrow(
    "rank 0 waits for sum, which never starts on all of its 2 ranks",
  );
  expect(() => lost.compute(0, Number.NaN, work)).toThrow("0F0 takes NaN s");
});

test("ranks that share cores run at the speed that is left to them", () => {
  const p = new Program(4);
  for (let rank = 0; rank < 4; rank++) p.compute(rank, 3, work);
  const shared = [{ cores: 2, ranks: [0, 1, 2, 3] }];
  expect(statistics(play(p, { shared })).makespan).toBe(6);
  expect(statistics(play(p, { shared: [{ cores: 4, ranks: [0, 1, 2, 3] }] })).makespan).toBe(3);
});
