import { beforeAll, expect, it } from "vitest";
import { bundle } from "../driver/bundle.ts";
import { type Programs, replayHistory } from "../driver/replay-history.ts";

let programs: Programs;
beforeAll(async () => {
  const [driver, agent] = await bundle("scripted-driver-main", "puppet-agent-main");
  programs = { driver: driver!, agent: agent! };
});

it(
  "the driver decides as the simulation did over 100 histories",
  { timeout: 1_200_000 },
  async () => {
    let [reports, records, takeOvers] = [0, 0, 0];
    for (let seed = 0; seed < 100; seed++) {
      const replayed = await replayHistory(seed, programs);
      reports += replayed.reports;
      records += replayed.records;
      takeOvers += replayed.takeOvers;
    }
    console.info({ reports, records, takeOvers });
    expect(reports).toBeGreaterThan(10_000);
    expect(records).toBeGreaterThan(1000);
    expect(takeOvers).toBeGreaterThan(50);
  },
);
