import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type AutomaticOptions,
  type ReplayCosts,
  automaticZeroBubble,
  createSchedule,
  replay,
  searchSchedule,
  validate,
  zbH1,
  zbH2,
  zbV,
} from "@trireme/schedulers";
import { randomSetting } from "./random-costs.ts";

const unit: ReplayCosts = { forward: 1, inputGradient: 1, weightGradient: 1 };

/** Costs of a random setting, from 0.25 to 2.25 in eighths. */
const costs: fc.Arbitrary<ReplayCosts> = fc
  .record({
    f: fc.integer({ min: 2, max: 18 }),
    i: fc.integer({ min: 2, max: 18 }),
    w: fc.integer({ min: 2, max: 18 }),
    c: fc.integer({ min: 0, max: 4 }),
  })
  .map(({ f, i, w, c }) => ({
    forward: f / 8,
    inputGradient: i / 8,
    weightGradient: w / 8,
    pointToPoint: c / 8,
  }));

describe("automatic zero bubble", () => {
  test("is never worse than ZB-H1, ZB-H2 and ZB-V under their memory limits", () => {
    fc.assert(
      fc.property(
        costs,
        fc.integer({ min: 2, max: 5 }),
        fc.integer({ min: 2, max: 10 }),
        (c, ranks, microbatches) => {
          const o = { ranks, microbatches };
          for (const [named, placement, memoryLimit] of [
            [zbH1(o), "loop", ranks],
            [zbH2(o), "loop", 2 * ranks - 1],
            [zbV(o), "v", 2 * ranks],
          ] as const) {
            const a = automaticZeroBubble({ ...o, costs: c, placement, memoryLimit, effort: 0.1 });
            expect(a.ok).toBe(true);
            if (!a.ok) return;
            const ours = replay(a.schedule, c);
            expect(validate(a.schedule)).toEqual({ ok: true });
            expect(ours.makespan).toBe(a.makespan);
            expect(a.makespan).toBeLessThanOrEqual(replay(named, c).makespan);
            expect(Math.max(...ours.peak)).toBeLessThanOrEqual(memoryLimit);
            // Sums in another order than the bound's differ in the last places.
            expect(a.makespan).toBeGreaterThanOrEqual(a.lowerBound * (1 - 1e-12));
          }
        },
      ),
      { numRuns: 25 },
    );
  });
  test("reaches the bound with equal costs where the papers say zero bubble", () => {
    for (const [placement, memoryLimit] of [
      ["loop", 7],
      ["v", 8],
    ] as const) {
      const a = automaticZeroBubble({
        ranks: 4,
        microbatches: 8,
        costs: unit,
        placement,
        memoryLimit,
      });
      expect(a).toMatchObject({ ok: true, gap: 0, makespan: placement === "v" ? 51 : 27 });
    }
  });
  test("searches loops of several stages per rank too", () => {
    const a = automaticZeroBubble({
      ranks: 4,
      microbatches: 8,
      chunks: 2,
      // Twice the chunks of 1F1B: as much memory.
      memoryLimit: 8,
      costs: unit,
      effort: 0.1,
    });
    expect(a).toMatchObject({ ok: true, makespan: 51, gap: 0 });
    expect(() =>
      automaticZeroBubble({ ranks: 2, microbatches: 2, placement: "v", chunks: 3, costs: unit }),
    ).toThrow("a V has 2 stages per rank, not 3");
  });
  test("keeps a memory limit that no named schedule keeps", () => {
    for (const memoryLimit of [1, 2, 3]) {
      const a = automaticZeroBubble({ ranks: 4, microbatches: 8, costs: unit, memoryLimit });
      expect(a.ok && Math.max(...replay(a.schedule, unit).peak)).toBe(memoryLimit);
      expect(a.ok && a.makespan).toBeGreaterThan(27);
    }
  });
  test("keeps limits in bytes that differ by rank", () => {
    const c = { ...unit, activation: (stage: number) => 10 + stage };
    const limit = (rank: number): number => [45, 20, 60][rank]!;
    const a = automaticZeroBubble({ ranks: 3, microbatches: 6, costs: c, memoryLimit: limit });
    expect(a.ok).toBe(true);
    if (!a.ok) return;
    for (const [rank, bytes] of replay(a.schedule, c).peakBytes.entries()) {
      expect(bytes).toBeLessThanOrEqual(limit(rank));
    }
  });
  test("gives the same schedule for the same seed", () => {
    const o: AutomaticOptions = { ...randomSetting(3), effort: 0.1, seed: 5 };
    expect(automaticZeroBubble(o)).toEqual(automaticZeroBubble(o));
  });
  test("says why nothing fits, and refuses bad costs", () => {
    expect(
      automaticZeroBubble({ ranks: 2, microbatches: 2, costs: unit, memoryLimit: 0.5 }),
    ).toEqual({
      ok: false,
      reason: "rank 0 needs 1 for the activations of one microbatch; its limit is 0.5",
    });
    expect(() =>
      automaticZeroBubble({ ranks: 2, microbatches: 2, costs: { forward: 1, backward: 2 } }),
    ).toThrow("give the cost inputGradient");
    expect(() =>
      automaticZeroBubble({ ranks: 2, microbatches: 2, costs: unit, memoryLimit: NaN }),
    ).toThrow("memory limit of rank 0 is NaN");
    expect(() => automaticZeroBubble({ ranks: 0, microbatches: 2, costs: unit })).toThrow(
      "ranks = 0",
    );
    for (const effort of [NaN, -1, Infinity]) {
      expect(() => automaticZeroBubble({ ranks: 2, microbatches: 2, costs: unit, effort })).toThrow(
        `effort is ${effort}; it is finite and at least 0`,
      );
    }
  });
});

describe("search over all schedules", () => {
  test("is never worse than any named schedule that fits, and never better than its bound", () => {
    fc.assert(
      fc.property(costs, fc.integer({ min: 1, max: 8 }), (c, memoryLimit) => {
        const o = { ranks: 4, microbatches: 8 };
        const found = searchSchedule({ ...o, costs: c, memoryLimit, effort: 0.1 });
        expect(found.ok).toBe(true);
        if (!found.ok) return;
        expect(found.best.makespan).toBeGreaterThanOrEqual(found.lowerBound * (1 - 1e-12));
        expect(found.best.peakBytes).toBeLessThanOrEqual(memoryLimit);
        for (const name of ["gpipe", "1f1b", "zb-h1", "zb-h2"]) {
          const r = replay(createSchedule(name, o), c);
          if (Math.max(...r.peak) <= memoryLimit) {
            expect(found.best.makespan).toBeLessThanOrEqual(r.makespan);
          }
        }
      }),
      { numRuns: 15 },
    );
  });
  test("prefers more stages per rank while transfers are free", () => {
    const found = searchSchedule({
      ranks: 4,
      microbatches: 8,
      costs: unit,
      memoryLimit: 4,
      chunks: [1, 2, 4],
    });
    expect(found).toMatchObject({ ok: true, gap: 0 });
    expect(found.ok && found.best.schedule.chunks).toBe(4);
  });
  test("takes whole backwards where halves cost more, with a bound that holds for them", () => {
    const c = { forward: 1, backward: 1.5, inputGradient: 1, weightGradient: 1 };
    const found = searchSchedule({ ranks: 2, microbatches: 12, costs: c, chunks: [1] });
    expect(found.ok && found.best.schedule.kind.includes(3)).toBe(true);
    expect(found.ok && found.best.makespan).toBeGreaterThanOrEqual(
      found.ok ? found.lowerBound : Infinity,
    );
  });
  test("costs that are functions of the stage hold for one stage per rank, or come per number of them", () => {
    const perStage: ReplayCosts = { ...unit, forward: (s) => 1 + s / 10 };
    const o = { ranks: 3, microbatches: 6 };
    const one = searchSchedule({ ...o, costs: perStage });
    expect(one.ok && new Set(one.candidates.map((x) => x.schedule.chunks))).toEqual(new Set([1]));
    const both = searchSchedule({
      ...o,
      costs: (chunks) => ({
        forward: (s) => (1 + s / 10 / chunks) / chunks,
        inputGradient: 1 / chunks,
        weightGradient: 1 / chunks,
      }),
    });
    expect(both.ok && new Set(both.candidates.map((x) => x.schedule.chunks))).toEqual(
      new Set([1, 2]),
    );
  });
  test("counts a second copy of the weights only where it is allowed", () => {
    const o = { ranks: 4, microbatches: 8, costs: { ...unit, overlapped: 2 } };
    const names = (bidirectional: boolean): string[] => {
      const found = searchSchedule({ ...o, bidirectional });
      return found.ok ? found.candidates.map((x) => x.name) : [];
    };
    expect(names(false)).not.toContain("dualpipe");
    expect(names(true)).toContain("dualpipe");
  });
  test("gives each stage of two directions the cost of a whole rank", () => {
    const o = { ranks: 4, microbatches: 8 };
    const c = { ...unit, overlapped: 3 };
    const found = searchSchedule({ ...o, costs: c, bidirectional: true });
    const dual = found.ok ? found.candidates.find((x) => x.name === "dualpipe") : undefined;
    // The golden number for P 4, M 8 with pairs that gain nothing.
    expect(dual).toMatchObject({ makespan: 26, peakBytes: 5 });
    const uneven = searchSchedule({
      ...o,
      costs: { ...c, forward: (s) => (s === 3 ? 2 : 1) },
      bidirectional: true,
      chunks: [1],
    });
    expect(uneven.ok && uneven.gap).toBeGreaterThanOrEqual(0);
    expect(uneven.ok && uneven.candidates.some((x) => x.name === "dualpipe")).toBe(true);
  });
  test("says why nothing fits", () => {
    const found = searchSchedule({ ranks: 2, microbatches: 2, costs: unit, memoryLimit: 0.2 });
    expect(found.ok).toBe(false);
    expect(found.ok || found.reason).toContain("gpipe holds 2 on rank 0, more than 0.2");
    expect(() => searchSchedule({ ranks: 2, microbatches: 2, costs: unit, chunks: [] })).toThrow(
      "no number of stages per rank to try; give chunks such as [1, 2]",
    );
  });
});
