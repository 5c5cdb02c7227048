/** The schedules and their times against what the reference implementations produced. */
import { describe, expect, test } from "vitest";
import {
  type ReplayCosts,
  type Schedule,
  actionsOf,
  createSchedule,
  lower,
  printActions,
  replay,
  validate,
} from "@trireme/schedulers";
import { type SimulatedTimes, torchVectors } from "./vectors.ts";

const settings: Readonly<Record<"F1I1W1" | "F2I2W1" | "F1I1W1c1", ReplayCosts>> = {
  F1I1W1: { forward: 1, inputGradient: 1, weightGradient: 1 },
  F2I2W1: { forward: 2, inputGradient: 2, weightGradient: 1 },
  F1I1W1c1: { forward: 1, inputGradient: 1, weightGradient: 1, pointToPoint: 1 },
};

function expectTimes(schedule: Schedule, costs: ReplayCosts, times: SimulatedTimes): void {
  const r = replay(schedule, costs);
  expect({
    makespan: r.makespan,
    busy: [...r.busy],
    idle: [...r.idle],
    idle_in: [...r.idleInside],
    peak: [...r.peak],
  }).toEqual(times);
}

const known: ReadonlySet<string> = new Set(["GPipe", "1F1B", "Interleaved1F1B"]);

describe("the orders of torch.distributed.pipelining", () => {
  for (const v of torchVectors.filter((x) => known.has(x.schedule))) {
    test(`${v.schedule} with P ${v.P}, V ${v.V}, M ${v.M}`, () => {
      const s = createSchedule(v.schedule, { ranks: v.P, chunks: v.V, microbatches: v.M });
      for (let r = 0; r < v.P; r++) {
        expect(printActions(actionsOf(s, r))).toBe(v.order[r]!.join(" "));
      }
      expect(validate(s)).toEqual({ ok: true });
      expect(validate(lower(s))).toEqual({ ok: true });
      for (const key of ["F1I1W1", "F2I2W1", "F1I1W1c1"] as const) {
        expectTimes(s, settings[key], v.sim[key]);
        expectTimes(lower(s), settings[key], v.sim[key]);
      }
    });
  }
});
