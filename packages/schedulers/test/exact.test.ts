import { describe, expect, test } from "vitest";
import { automaticZeroBubble, replay, validate } from "@trireme/schedulers";
import { exactSchedule } from "@trireme/schedulers/exact";
import { randomSetting } from "./random-costs.ts";

describe("the exact solver", () => {
  // 15 of the 200 settings of the sweep in slow/exact-sweep.test.ts.
  test.each(Array.from({ length: 15 }, (_, k) => 6 + k))(
    "setting %d: the automatic search is within 2 per cent of the optimum",
    async (seed) => {
      const o = randomSetting(seed);
      const automatic = automaticZeroBubble(o);
      const exact = await exactSchedule({ ...o, alwaysSolve: true });
      expect(exact).toMatchObject({ ok: true, optimal: true });
      expect(automatic).toMatchObject({ ok: true });
      if (!exact.ok || !automatic.ok) return;
      expect(validate(exact.schedule)).toEqual({ ok: true });
      expect(Math.max(...replay(exact.schedule, o.costs).peak)).toBeLessThanOrEqual(
        Number(o.memoryLimit),
      );
      expect(automatic.makespan).toBeLessThanOrEqual(1.02 * exact.makespan);
      // The solver's relative tolerance is 1e-7.
      expect(automatic.lowerBound).toBeLessThanOrEqual(exact.makespan * (1 + 1e-6));
    },
  );
  test("improves on a search that was given no time", async () => {
    const o = {
      ranks: 2,
      microbatches: 3,
      placement: "v",
      memoryLimit: 2,
      costs: { forward: 1, inputGradient: 1.7, weightGradient: 0.4, pointToPoint: 0.3 },
      effort: 0,
    } as const;
    const exact = await exactSchedule(o);
    const automatic = automaticZeroBubble(o);
    expect(exact).toMatchObject({ ok: true, optimal: true });
    expect(automatic).toMatchObject({ ok: true });
    if (!exact.ok || !automatic.ok) return;
    expect(validate(exact.schedule)).toEqual({ ok: true });
    expect(exact.makespan).toBeLessThanOrEqual(automatic.makespan);
    expect(exact.makespan).toBeLessThanOrEqual(replay(exact.schedule, o.costs).makespan);
  });
  test("refuses what is too large, and says why nothing fits", async () => {
    const costs = { forward: 1, inputGradient: 1.3, weightGradient: 0.7 };
    const large = { ranks: 4, microbatches: 24, placement: "v", costs, memoryLimit: 5 } as const;
    await expect(exactSchedule({ ...large, effort: 0.01 })).rejects.toThrow(
      "the exact solver takes up to 600",
    );
    expect(await exactSchedule({ ranks: 2, microbatches: 1, costs, memoryLimit: 0 })).toMatchObject(
      { ok: false },
    );
    // Known before the pairs of its orders are counted: they would not fit a Set.
    const wide = { ranks: 16, microbatches: 128, costs, alwaysSolve: true, effort: 0 };
    await expect(exactSchedule(wide)).rejects.toThrow(
      "16 ranks with 128 microbatches have 6144 actions; the exact solver takes up to 2000",
    );
    await expect(
      exactSchedule({ ranks: 2, microbatches: 2, costs, timeLimit: NaN }),
    ).rejects.toThrow("timeLimit is NaN s; it is above 0");
  });
});
