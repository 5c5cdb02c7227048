import { beforeAll, expect, it } from "vitest";
import { bundle } from "./bundle.ts";
import { type Programs, replayHistory } from "./replay-history.ts";

let programs: Programs;
beforeAll(async () => {
  const [driver, agent] = await bundle("scripted-driver-main", "puppet-agent-main");
  programs = { driver: driver!, agent: agent! };
});

// Short ones, with recoveries, evictions, take-overs and a run given up among them.
it.each([19, 22, 46, 69, 89])(
  "the driver decides as the simulation did: history %i",
  async (seed) => {
    const { reports, records } = await replayHistory(seed, programs);
    expect(reports).toBeGreaterThan(50);
    expect(records).toBeGreaterThan(3);
  },
);
