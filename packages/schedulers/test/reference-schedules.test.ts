/** The schedules and their times against what the reference implementations produced. */
import { describe, expect, test } from "vitest";
import {
  type ReplayCosts,
  type Schedule,
  actionsOf,
  createSchedule,
  dualPipe,
  lower,
  parseSchedule,
  printActions,
  replay,
  validate,
  vHalfBlock,
  vMinBlock,
} from "@trireme/schedulers";
import { type SimulatedTimes, dualPipeVectors, sailVectors, torchVectors } from "./vectors.ts";

const unit: ReplayCosts = { forward: 1, inputGradient: 1, weightGradient: 1 };
const settings: Readonly<Record<"F1I1W1" | "F2I2W1" | "F1I1W1c1", ReplayCosts>> = {
  F1I1W1: unit,
  F2I2W1: { forward: 2, inputGradient: 2, weightGradient: 1 },
  F1I1W1c1: { ...unit, pointToPoint: 1 },
};

function timesOf(schedule: Schedule, costs: ReplayCosts): SimulatedTimes {
  const r = replay(schedule, costs);
  return {
    makespan: r.makespan,
    busy: [...r.busy],
    idle: [...r.idle],
    idle_in: [...r.idleInside],
    peak: [...r.peak],
  };
}

describe("the orders and times of torch.distributed.pipelining", () => {
  for (const v of torchVectors) {
    test(`${v.schedule} with P ${v.P}, V ${v.V}, M ${v.M}`, () => {
      const s = createSchedule(v.schedule, { ranks: v.P, chunks: v.V, microbatches: v.M });
      for (let r = 0; r < v.P; r++) {
        expect(printActions(actionsOf(s, r))).toBe(v.order[r]!.join(" "));
      }
      expect(validate(s)).toEqual({ ok: true });
      expect(validate(lower(s))).toEqual({ ok: true });
      for (const key of ["F1I1W1", "F2I2W1", "F1I1W1c1"] as const) {
        expect(timesOf(s, settings[key])).toEqual(v.sim[key]);
        expect(timesOf(lower(s), settings[key])).toEqual(v.sim[key]);
      }
    });
  }
});

describe("the heuristic schedules of sail-sg's zero bubble", () => {
  for (const v of sailVectors) {
    const rows = Object.values(v.order).map((row) => row.replaceAll(" ", ","));
    test(`the ${v.schedule} order of P ${v.P}, M ${v.M} is valid and has its published times`, () => {
      const s = parseSchedule(rows.join("\n"));
      expect(validate(s)).toEqual({ ok: true });
      expect(timesOf(s, unit)).toEqual(v.sim);
    });
    test(`our ${v.schedule} of P ${v.P}, M ${v.M} is as fast in as little memory`, () => {
      const name = v.schedule === "ZBV-greedy" ? "zb-v" : v.schedule;
      const s = createSchedule(name, { ranks: v.P, microbatches: v.M });
      const ours = timesOf(s, unit);
      expect(validate(s)).toEqual({ ok: true });
      expect({ makespan: ours.makespan, idle: ours.idle, idle_in: ours.idle_in }).toEqual({
        makespan: v.sim.makespan,
        idle: v.sim.idle,
        idle_in: v.sim.idle_in,
      });
      expect(Math.max(...ours.peak)).toBe(Math.max(...v.sim.peak));
    });
    if (v.stable_pattern !== undefined && v.schedule !== "ZBV-greedy") {
      test(`the building block of ${v.schedule} for P ${v.P} is the published one`, () => {
        const block = v.schedule === "V-half" ? vHalfBlock : vMinBlock;
        const blocks = Array.from({ length: v.P }, (_, r) => block(v.P, r));
        expect(blocks).toEqual(v.stable_pattern);
      });
    }
  }
});

describe("the orders and times of DeepSeek's DualPipe", () => {
  /** The reference's notation: a and b are the directions, each with its own microbatches. */
  function reference(s: Schedule, rank: number): string {
    return actionsOf(s, rank)
      .map((a) => {
        const second = a.stage >= s.ranks;
        const m = a.microbatch - (second ? s.microbatches / 2 : 0);
        return `${a.kind}${second ? "b" : "a"}${m}${a.overlap === "first" ? "&" : " "}`;
      })
      .join("")
      .trim();
  }
  for (const v of dualPipeVectors) {
    test(`P ${v.P}, M ${v.M}`, () => {
      const s = dualPipe({ ranks: v.P, microbatches: v.M });
      for (let r = 0; r < v.P; r++) expect(reference(s, r)).toBe(v.order[r]);
      expect(validate(s)).toEqual({ ok: true });
      expect(validate(lower(s))).toEqual({ ok: true });
      const full = timesOf(s, { ...unit, overlapped: 3 });
      expect(full).toMatchObject({
        makespan: v.sim_F1_I1_W1_FB3.makespan,
        idle: v.sim_F1_I1_W1_FB3.idle,
        peak: v.sim_F1_I1_W1_FB3.peak,
      });
      const overlapped = timesOf(s, { ...unit, overlapped: 2 });
      expect(overlapped).toMatchObject({
        makespan: v.sim_FB2.makespan,
        idle: v.sim_FB2.idle,
        peak: v.sim_FB2.peak,
      });
    });
  }
});

describe("golden numbers for costs that differ", () => {
  test.each([
    ["gpipe", 4, 1, 4, 35],
    ["gpipe", 4, 1, 8, 55],
    ["1f1b", 4, 1, 8, 55],
    ["interleaved", 4, 2, 8, 95],
    ["interleaved-zero-bubble", 4, 1, 8, 49],
    ["interleaved-zero-bubble", 4, 2, 8, 89],
    ["zb-v", 4, 2, 8, 86],
    ["zb-v", 4, 2, 12, 126],
    ["dualpipe-v", 4, 2, 8, 95],
  ])("%s (%d,%d,%d) with F 2, I 2, W 1 takes %d", (name, ranks, chunks, microbatches, makespan) => {
    const s = createSchedule(name, { ranks, chunks, microbatches });
    expect(replay(s, settings.F2I2W1).makespan).toBe(makespan);
  });
  test.each([
    ["gpipe", 4, 1, 4, 27],
    ["gpipe", 4, 1, 8, 39],
    ["1f1b", 2, 1, 4, 19],
    ["1f1b", 4, 1, 4, 31],
    ["1f1b", 4, 1, 8, 49],
    ["1f1b", 8, 1, 16, 109],
    ["looped-bfs", 4, 2, 8, 63],
    ["interleaved", 4, 2, 8, 71],
    ["interleaved-zero-bubble", 4, 1, 8, 41],
    ["zb-v", 4, 2, 8, 65],
    ["dualpipe-v", 4, 2, 8, 75],
  ])(
    "%s (%d,%d,%d) with transfers of 1 takes %d",
    (name, ranks, chunks, microbatches, makespan) => {
      const s = createSchedule(name, { ranks, chunks, microbatches });
      expect(replay(s, settings.F1I1W1c1).makespan).toBe(makespan);
    },
  );
});
