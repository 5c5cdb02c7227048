import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type Schedule,
  actionsOf,
  addEarlySendReceive,
  addReduceGrad,
  addSendReceive,
  addUnshardReshard,
  dualPipe,
  gpipe,
  interleaved,
  interleavedZeroBubble,
  lower,
  mergeBackward,
  oneForwardOneBackward,
  parseSchedule,
  printActions,
  replay,
  slotCount,
  validate,
  weightPriorities,
  withSlots,
} from "@trireme/schedulers";
import { anyCosts, anySchedule } from "./random-schedule.ts";

function rows(...lines: string[]): Schedule {
  return parseSchedule(
    lines
      .map((line) => line.replaceAll(" ", ",").replaceAll("_,", ",").replaceAll("_", ""))
      .join("\n"),
  );
}

function text(s: Schedule): string[] {
  return Array.from({ length: s.ranks }, (_, r) => printActions(actionsOf(s, r)));
}

describe("torch's vectors", () => {
  test("unshard and reshard of one stage", () => {
    const s = parseSchedule("0F0,0F1,,0B0,0B1");
    expect(text(addUnshardReshard(s))).toEqual(["0UNSHARD 0F0 0F1 0B0 0B1 0RESHARD"]);
  });
  test("unshard and reshard of two stages", () => {
    const s = rows("0F0 0F1 1F0 1F1 1B0 1B1 0B0 0B1");
    expect(text(addUnshardReshard(s))).toEqual([
      "0UNSHARD 1UNSHARD 0F0 0F1 1F0 1F1 1B0 1B1 1RESHARD 0B0 0B1 0RESHARD",
    ]);
  });
  test("reduction of gradients after the last backward", () => {
    const s = rows("0F0 0F1 1F0 1F1 1B0 1B1 0B0 0B1");
    expect(text(addReduceGrad(s))).toEqual([
      "0F0 0F1 1F0 1F1 1B0 1B1 1REDUCE_GRAD 0B0 0B1 0REDUCE_GRAD",
    ]);
  });
  test("merging of I and W", () => {
    expect(text(mergeBackward(rows("0F0 0F1 0F2 0I0 0I1 0W0 0I2 0W2 0W1")))).toEqual([
      "0F0 0F1 0F2 0I0 0I1 0W0 0B2 0W1",
    ]);
  });
  test("sends and receives of two ranks, 11 steps", () => {
    const s = parseSchedule("0F0,0F1,,0B0,,0B1\n,1F0,1B0,1F1,1B1,");
    const l = addEarlySendReceive(s);
    expect(text(l)).toEqual([
      "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1",
      "1RECV_F0 1RECV_F1 1F0 1B0 1SEND_B0 1F1 1B1 1SEND_B1",
    ]);
    expect(slotCount(withSlots(l))).toBe(11);
  });
  test("a V on two ranks, 24 steps, and nothing sent between stages of one rank", () => {
    const l = addEarlySendReceive(
      parseSchedule(
        "0F0,0F1,,3F0,3I0,3F1,3I1,0I0,3W0,0I1,3W1,0W0,0W1\n" +
          ",1F0,2F0,1F1,2F1,2I0,1I0,2I1,1I1,2W0,2W1,1W0,1W1",
      ),
    );
    expect(slotCount(withSlots(l))).toBe(24);
    expect(text(l).join(" ")).not.toMatch(/1SEND_F|2RECV_F|2SEND_B|1RECV_B/);
  });
  test("interleaved zero bubble, P 2, V 2, M 8: 113 steps in torch's order, 97 with late receives", () => {
    const s = interleavedZeroBubble({ ranks: 2, chunks: 2, microbatches: 8 });
    expect(slotCount(withSlots(lower(s, { receives: "early" })))).toBe(113);
    expect(slotCount(withSlots(lower(s)))).toBe(97);
  });
});

describe("sends and receives", () => {
  test("leave the makespan unchanged when transfers take no time", () => {
    fc.assert(
      fc.property(anySchedule, anyCosts, (s, costs) => {
        const alone = replay(s, costs).makespan;
        for (const receives of ["late", "early"] as const) {
          const l = lower(s, { receives });
          expect(validate(l)).toEqual({ ok: true });
          expect(replay(l, costs).makespan).toBe(alone);
        }
        // Late receives cost nothing even where they hold up their rank.
        expect(replay(lower(s), { ...costs, communication: "coupled" }).makespan).toBe(alone);
      }),
      { numRuns: 60 },
    );
  });
  test("front-loaded receives that hold up their rank make bubbles; late ones do not", () => {
    // As in pytorch#188833.
    const s = oneForwardOneBackward({ ranks: 4, microbatches: 8 });
    const costs = { forward: 1, backward: 2, communication: "coupled" } as const;
    expect(replay(lower(s, { receives: "early" }), costs).makespan).toBeGreaterThan(33);
    expect(replay(lower(s), costs).makespan).toBe(33);
  });
  test("torch's order runs without buffers, for every schedule", () => {
    fc.assert(
      fc.property(anySchedule, (s) => {
        expect(validate(lower(s, { receives: "early" }), { sends: "rendezvous" })).toEqual({
          ok: true,
        });
      }),
      { numRuns: 60 },
    );
  });
  test("between two ranks that are neighbours both ways arrive in the order of their sends", () => {
    // Megatron-LM#750: with P = 2 and V = 2 the next and the previous rank are the same.
    const l = lower(interleaved({ ranks: 2, chunks: 2, microbatches: 4 }));
    expect(validate(l)).toEqual({ ok: true });
    expect(text(l)[1]).toContain("3RECV_F0");
    expect(text(l)[1]).toContain("1RECV_B0");
  });
  test("are added once", () => {
    const l = lower(gpipe({ ranks: 2, microbatches: 2 }));
    expect(() => addSendReceive(l)).toThrow("already has sends and receives; lower it once");
    expect(() => addEarlySendReceive(l)).toThrow("already has sends and receives; lower it once");
    const reduced = addReduceGrad(gpipe({ ranks: 2, microbatches: 2 }));
    expect(() => addReduceGrad(reduced)).toThrow("gpipe already reduces gradients; add that once");
    const gathered = addUnshardReshard(gpipe({ ranks: 2, microbatches: 2 }));
    expect(() => addUnshardReshard(gathered)).toThrow(
      "gpipe already gathers weights; add that once",
    );
  });
  test("slots are counted where there are some", () => {
    expect(() => slotCount(gpipe({ ranks: 2, microbatches: 2 }))).toThrow(
      "gpipe has no time slots; withSlots gives it some",
    );
  });
  test("one rank sends nothing", () => {
    const s = interleaved({ ranks: 1, chunks: 3, microbatches: 4 });
    expect(text(lower(s))).toEqual(text(s));
  });
});

describe("weights of whole stages", () => {
  test("are gathered before use and at most so many at a time", () => {
    fc.assert(
      fc.property(anySchedule, fc.integer({ min: 2, max: 4 }), (s, maxUnsharded) => {
        const l = lower(s, { maxUnsharded, reduceGrad: true });
        expect(validate(l)).toEqual({ ok: true });
        for (let r = 0; r < s.ranks; r++) {
          const held = new Set<number>();
          for (const a of actionsOf(l, r)) {
            if (a.kind === "UNSHARD") held.add(a.stage);
            if (a.kind === "RESHARD") held.delete(a.stage);
            if (["F", "I", "W", "B"].includes(a.kind)) expect(held.has(a.stage)).toBe(true);
            expect(held.size).toBeLessThanOrEqual(maxUnsharded);
          }
          expect(held.size).toBe(0);
        }
      }),
      { numRuns: 60 },
    );
  });
  test("need room for both stages of an overlapped pair", () => {
    const s = dualPipe({ ranks: 2, microbatches: 4 });
    expect(() => addUnshardReshard(s, { maxUnsharded: 1 })).toThrow("use 2");
    expect(() => addUnshardReshard(s, { maxUnsharded: 0 })).toThrow("maxUnsharded = 0");
  });
  test("are as urgent as their next use; reductions come last", () => {
    const s = addReduceGrad(addUnshardReshard(rows("0F0 1F0 1B0 0B0")));
    expect(text(s)).toEqual([
      "0UNSHARD 1UNSHARD 0F0 1F0 1B0 1REDUCE_GRAD 1RESHARD 0B0 0REDUCE_GRAD 0RESHARD",
    ]);
    expect([...weightPriorities(s)]).toEqual([2, 3, -1, -1, -1, 15, -1, -1, 18, -1]);
  });
  test("of later chunks hide behind the first: MegaScale's 1 of V gathers and reductions shows", () => {
    const s = interleaved({ ranks: 2, chunks: 4, microbatches: 8 });
    const costs = { forward: 1, backward: 2 };
    const alone = replay(s, costs).makespan;
    const l = lower(s, { maxUnsharded: 4, reduceGrad: true });
    const r = replay(l, { ...costs, unshard: 1, reduceGradient: 1 });
    // The first gather (1 s) and the last reduction (1 s) show, the six others of each rank do not.
    expect(r.makespan).toBe(alone + 2);
    // All at the start or the end would show in full.
    expect(r.makespan).toBeLessThan(alone + 4 + 4);
  });
});
