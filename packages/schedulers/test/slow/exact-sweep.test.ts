/** Takes about a minute: the 200 random settings of which 15 are in exact.test.ts. */
import { expect, test } from "vitest";
import { automaticZeroBubble } from "@trireme/schedulers";
import { exactSchedule } from "@trireme/schedulers/exact";
import { randomSetting } from "../random-costs.ts";

test(
  "the automatic search is within 2 % of the optimum in 200 random settings",
  { timeout: 600_000 },
  async () => {
    let worst = 0;
    for (let seed = 0; seed < 200; seed++) {
      const o = randomSetting(seed);
      const automatic = automaticZeroBubble(o);
      const exact = await exactSchedule({ ...o, alwaysSolve: true });
      expect(exact).toMatchObject({ ok: true, optimal: true });
      expect(automatic).toMatchObject({ ok: true });
      if (exact.ok && automatic.ok)
        worst = Math.max(worst, automatic.makespan / exact.makespan - 1);
    }
    expect(worst).toBeLessThanOrEqual(0.02);
  },
);
