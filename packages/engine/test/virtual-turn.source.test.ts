/** Ranks that are not run, kept in time: against what can be worked out by hand. */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { ShardTurn, ShardTurns } from "../src/emulation/shard-turns.ts";
import type { CallEvent } from "../src/emulation/trace.ts";
import { VirtualTurn } from "../src/emulation/virtual-turn.ts";

type Call = Pick<CallEvent, "operation" | "peer" | "gap">;

/** A rank that waits for each of its calls at once, and then works for `rest`. */
function rank(number: number, ranks: number, calls: readonly Call[], rest = 0) {
  const members = Array.from({ length: ranks }, (_, r) => r);
  const made = calls.map((call): CallEvent => ({
    ...call,
    kind: "call",
    group: 0,
    sequence: 1,
    type: "f32",
    count: 1,
    digest: 0,
    offset: -1,
  }));
  const events: ShardTurn["events"] = made.flatMap((call, index) => [
    call,
    { kind: "wait", gap: 0, call: index } as const,
  ]);
  const end = { kind: "wait", gap: rest, call: made.length - 1 } as const;
  const turn: ShardTurn = { request: "train", events: [...events, end], calls: made, lossSum: 0 };
  const shard: ShardTurns = { rank: number, groups: [{ name: "all", members }], turns: [turn] };
  return { shard, turn };
}

/** Lets the turn go on whenever something is due; returns when each call of ranks that are run was ready. */
function drive(turn: VirtualTurn, from: number): Map<string, number> {
  const ready = new Map<string, number>();
  for (let time = from; time < Infinity; time = turn.advance(time)) {
    turn.advance(time);
    for (const call of turn.takeReady()) ready.set(`${call.rank}:${call.index}`, time);
  }
  return ready;
}

const gaps = fc.array(fc.integer({ min: 1, max: 1000 }), { minLength: 2, maxLength: 8 });

test("a message through a chain comes when all before have worked", () => {
  fc.assert(
    fc.property(gaps, (work) => {
      const ranks = work.length + 1;
      const chain = work.map((gap, r) =>
        rank(r, ranks, [
          ...(r > 0 ? [{ operation: "receive", peer: r - 1, gap: 0 } as const] : []),
          { operation: "send", peer: r + 1, gap },
        ]),
      );
      const last = rank(ranks - 1, ranks, [{ operation: "receive", peer: ranks - 2, gap: 0 }]);
      const turn = new VirtualTurn([...chain, last], new Set([ranks - 1]), 5);
      const total = work.reduce((a, b) => a + b, 0);
      expect(drive(turn, 5)).toEqual(new Map([[`${ranks - 1}:0`, 5 + total]]));
      expect(turn.done).toBe(true);
    }),
  );
});

test("an all-reduce ends with the last to call, whether it is run or not", () => {
  fc.assert(
    fc.property(gaps, fc.integer({ min: 1, max: 1500 }), (work, own) => {
      const ranks = work.length + 1;
      const others = work.map((gap, r) =>
        rank(r, ranks, [{ operation: "all-reduce", peer: -1, gap }]),
      );
      const run = rank(ranks - 1, ranks, [{ operation: "all-reduce", peer: -1, gap: 0 }]);
      const turn = new VirtualTurn([...others, run], new Set([ranks - 1]), 0);
      const slowest = Math.max(...work);
      let ready = Infinity;
      // Whoever comes last.
      for (const time of [...work, own].toSorted((a, b) => a - b)) {
        turn.advance(time);
        if (time === own) turn.called(ranks - 1, 0, time);
        turn.advance(time);
        for (const call of turn.takeReady()) if (call.rank === ranks - 1) ready = time;
      }
      expect(ready).toBe(slowest);
      expect(turn.done).toBe(true);
    }),
  );
});

test("ranks that wait for one that is run say so", () => {
  const first = rank(0, 2, [{ operation: "receive", peer: 1, gap: 0 }]);
  const run = rank(1, 2, [{ operation: "send", peer: 0, gap: 0 }]);
  const turn = new VirtualTurn([first, run], new Set([1]), 0);
  expect(turn.advance(1)).toBe(Infinity);
  expect(turn.waiting).toBe("rank 0, which is not run, is at receive 1");
  turn.called(1, 0, 2);
  expect(turn.advance(2)).toBe(Infinity);
  expect(turn.done).toBe(true);
});
