import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type ReplayCosts,
  type Schedule,
  createSchedule,
  gpipe,
  interleaved,
  kindCode,
  loopedBfs,
  lower,
  oneForwardOneBackward,
  replay,
  spansOf,
  zbH1,
} from "@trireme/schedulers";
import { anyCosts, anySchedule, trainingSchedule } from "./random-schedule.ts";

const unit: ReplayCosts = { forward: 1, inputGradient: 1, weightGradient: 1 };

/** A slow replay that relaxes all times until nothing changes, with objects and maps. */
function slowMakespan(s: Schedule, costs: ReplayCosts): number {
  const ends = new Map<string, number>();
  const cost = (c: ReplayCosts["forward"] | undefined, stage: number, m: number): number =>
    typeof c === "function" ? c(stage, m) : (c ?? 0);
  const chain = s.stages / s.directions;
  const transfer = (a: number, b: number): number =>
    s.stageRank[a] === s.stageRank[b]
      ? 0
      : typeof costs.pointToPoint === "number"
        ? costs.pointToPoint
        : 0;
  for (let changed = true; changed;) {
    changed = false;
    for (let r = 0; r < s.ranks; r++) {
      let now = 0;
      for (let i = s.offsets[r]!; i < s.offsets[r + 1]!; i++) {
        const [k, st, m] = [s.kind[i]!, s.stage[i]!, s.microbatch[i]!];
        const inputs: [string, number][] = [];
        let duration = cost(costs.weightGradient, st, m);
        if (k === kindCode.F) {
          duration = cost(costs.forward, st, m);
          if (st % chain > 0) inputs.push([`F${st - 1},${m}`, transfer(st - 1, st)]);
        } else if (k !== kindCode.W) {
          duration = cost(costs.inputGradient, st, m) + (k === kindCode.B ? duration : 0);
          if (st % chain < chain - 1) inputs.push([`B${st + 1},${m}`, transfer(st + 1, st)]);
        }
        const name = k === kindCode.F ? "F" : k === kindCode.W ? "W" : "B";
        let start = now;
        for (const [input, delay] of inputs)
          start = Math.max(start, (ends.get(input) ?? 0) + delay);
        now = start + duration;
        if (s.overlap[i] === 1) {
          // The pair starts with the later of its inputs and takes the sum of both.
          const [st2, m2] = [s.stage[i + 1]!, s.microbatch[i + 1]!];
          if (st2 % chain < chain - 1) {
            const other = (ends.get(`B${st2 + 1},${m2}`) ?? 0) + transfer(st2 + 1, st2);
            now = Math.max(start, other) + duration;
          }
          now += cost(costs.inputGradient, st2, m2) + cost(costs.weightGradient, st2, m2);
          if (ends.get(`B${st2},${m2}`) !== now) {
            ends.set(`B${st2},${m2}`, now);
            changed = true;
          }
          i++;
        }
        if (ends.get(`${name}${st},${m}`) !== now) {
          ends.set(`${name}${st},${m}`, now);
          changed = true;
        }
      }
    }
  }
  return Math.max(...ends.values());
}

describe("replay", () => {
  test("agrees with a slow relaxation to a fixed point", () => {
    fc.assert(
      fc.property(anySchedule, anyCosts, fc.integer({ min: 0, max: 16 }), (s, costs, p2p) => {
        const all = { ...costs, pointToPoint: p2p / 8 };
        // Eighths add without rounding, so the results are equal bit for bit.
        expect(replay(s, all).makespan).toBe(slowMakespan(s, all));
      }),
      { numRuns: 60 },
    );
  });
  test("1F1B and GPipe take (M + P − 1)(F + B)", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 12 }),
        fc.integer({ min: 1, max: 30 }),
        fc.integer({ min: 0, max: 50 }),
        fc.integer({ min: 0, max: 50 }),
        (ranks, microbatches, forward, backward) => {
          const expected = (microbatches + ranks - 1) * (forward + backward);
          const o = { ranks, microbatches };
          expect(replay(oneForwardOneBackward(o), { forward, backward }).makespan).toBe(expected);
          expect(replay(gpipe(o), { forward, backward }).makespan).toBe(expected);
        },
      ),
    );
  });
  test("interleaving divides the bubble by the chunks", () => {
    for (const chunks of [1, 2, 3, 4]) {
      const s = interleaved({ ranks: 4, chunks, microbatches: 12 });
      // Costs of a chunk: the rank's 12 and 24 divided by V.
      const r = replay(s, { forward: 12 / chunks, backward: 24 / chunks });
      expect([...r.idle]).toEqual(Array.from({ length: 4 }, () => (3 * 36) / chunks));
    }
  });
  test("never has less than no idle time, and busy time is the work", () => {
    fc.assert(
      fc.property(trainingSchedule, anyCosts, (s, costs) => {
        const r = replay(s, costs);
        for (let rank = 0; rank < s.ranks; rank++) {
          expect(r.idle[rank]).toBeGreaterThanOrEqual(0);
          expect(r.idleInside[rank]).toBeGreaterThanOrEqual(0);
          expect(r.busy[rank]! + r.idle[rank]!).toBe(r.makespan);
        }
      }),
    );
  });
  test("keeps the memory bound of each schedule", () => {
    const most: Readonly<Record<string, (p: number, v: number, m: number) => number>> = {
      gpipe: (_, _v, m) => m,
      "1f1b": (p, _, m) => Math.min(p, m),
      "deepspeed-train": (p, _, m) => Math.min(p, m),
      "looped-bfs": (_, v, m) => v * m,
      "zb-h1": (p, _, m) => Math.min(p, m),
      "zb-h2": (p, _, m) => Math.min(2 * p - 1, m),
      "zb-v": (p, _, m) => Math.min(2 * p, 2 * m),
      dualpipe: (p, _, m) => Math.min(p + 1, m),
      "dualpipe-v": (p, _, m) => Math.min(2 * p + 1, 2 * m),
      chimera: (p, _, m) => Math.min(p + (p % 2), m),
    };
    fc.assert(
      fc.property(trainingSchedule, (s) => {
        const bound = most[s.name];
        if (bound === undefined) return;
        const { peak } = replay(s, { ...unit, overlapped: 2 });
        expect(Math.max(...peak)).toBeLessThanOrEqual(bound(s.ranks, s.chunks, s.microbatches));
      }),
    );
  });
  test("takes no less time for more microbatches", () => {
    for (const name of ["gpipe", "1f1b", "zb-h1", "zb-h2", "zb-v", "v-half", "v-min"]) {
      let before = 0;
      for (let microbatches = 1; microbatches <= 20; microbatches++) {
        const { makespan } = replay(createSchedule(name, { ranks: 4, microbatches }), unit);
        expect(makespan).toBeGreaterThan(before);
        before = makespan;
      }
    }
  });
  test("looped BFS suffers least of the looped schedules from transfers", () => {
    const o = { ranks: 4, chunks: 2, microbatches: 8 };
    const costs = { ...unit, pointToPoint: 1 };
    expect(replay(loopedBfs(o), costs).makespan).toBeLessThan(
      replay(interleaved(o), costs).makespan,
    );
  });
  test("decoupled sends and receives are no slower than coupled ones, phase by phase", () => {
    fc.assert(
      fc.property(trainingSchedule, anyCosts, (s, costs) => {
        const l = lower(s);
        const at = (communication: ReplayCosts["communication"]): number =>
          replay(l, { ...costs, pointToPoint: 0.5, ...(communication && { communication }) })
            .makespan;
        const coupled = at("coupled");
        const decoupled = at("decoupled");
        expect(decoupled).toBe(at(undefined));
        const decoupledSteady = at({ warmUp: "coupled", steady: "decoupled", coolDown: "coupled" });
        expect(decoupled).toBeLessThanOrEqual(decoupledSteady);
        expect(decoupledSteady).toBeLessThanOrEqual(coupled);
      }),
    );
  });
  test("coupled exchanges cost 1F1B a transfer for each action of the steady state", () => {
    // 2 ranks, F = B = 1, transfers of 1: rank 0 runs F, waits for its send, then for the gradient.
    const s = lower(oneForwardOneBackward({ ranks: 2, microbatches: 8 }));
    const costs = { forward: 1, backward: 1, pointToPoint: 1 };
    const decoupled = replay(s, { ...costs, communication: "decoupled" }).makespan;
    const coupled = replay(s, { ...costs, communication: "coupled" }).makespan;
    expect(coupled).toBeGreaterThan(decoupled);
  });
  test("the peak in bytes weighs stages by their activations", () => {
    const s = zbH1({ ranks: 3, microbatches: 6 });
    const r = replay(s, { ...unit, activation: (stage) => [100, 10, 1][stage]! });
    expect([...r.peakBytes]).toEqual([300, 30, 3]);
    expect([...r.peak]).toEqual([3, 3, 3]);
  });
  test("spans cover every action and end with the makespan", () => {
    const s = lower(zbH1({ ranks: 3, microbatches: 6 }));
    const r = replay(s, { ...unit, pointToPoint: 0.25 });
    const spans = [...spansOf(s, r)];
    expect(spans.length).toBe(s.kind.length);
    expect(Math.max(...spans.map((x) => x.end))).toBe(r.makespan);
    expect(spans[0]).toEqual({
      rank: 0,
      lane: "compute",
      kind: "forward",
      action: "0F0",
      start: 0,
      end: 1,
      stage: 0,
      microbatch: 0,
    });
    const receive = spans.find((x) => x.action === "1RECV_F0")!;
    // Posted at once, and there a quarter of a second after the forward of 1 s ended.
    expect([receive.start, receive.end]).toEqual([0, 1.25]);
  });
});

describe("costs are refused", () => {
  const s = zbH1({ ranks: 2, microbatches: 2 });
  test.each([
    [{ forward: 1 }, "splits the backward into I and W; give the cost inputGradient"],
    [{ ...unit, forward: -1 }, "forward of stage 0 is -1"],
    [{ ...unit, forward: NaN }, "forward of stage 0 is NaN"],
    [
      { ...unit, weightGradient: (stage: number) => (stage === 1 ? Infinity : 1) },
      "weightGradient of stage 1 is Infinity",
    ],
    [{ ...unit, pointToPoint: -2 }, "pointToPoint of stage 0 is -2"],
    [{ ...unit, activation: -2 }, "activation of stage 0 is -2"],
  ])("%#: %j", (costs, message) => {
    expect(() => replay(s, costs)).toThrow(message);
  });
  test("a whole backward needs its cost", () => {
    expect(() => replay(gpipe({ ranks: 1, microbatches: 1 }), { forward: 1 })).toThrow(
      "gpipe has B: give backward, or inputGradient and weightGradient",
    );
  });
});
