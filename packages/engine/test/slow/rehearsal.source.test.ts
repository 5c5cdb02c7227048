/** Sleeping actions through the real communicator and player: idle time as the schedule predicts. */
import { expect, test } from "vitest";
import { pipelineSchedules } from "@trireme/workload";
import { idleFractions } from "../rehearsal.ts";

const twoChunks = new Set<string>([
  "zb-v",
  "v-half",
  "v-min",
  "dualpipe-v",
  "interleaved",
  "dfs-bfs",
  "looped-bfs",
  "interleaved-zero-bubble",
]);

test.each(pipelineSchedules)(
  "pp4 %s idles within a tenth of what replay says",
  async (schedule) => {
    const vpp = twoChunks.has(schedule) ? 2 : 1;
    const { measured, predicted } = await idleFractions({ pp: 4, vpp, schedule });
    // A schedule without any idle time has nothing to be 10 % of: half a per cent of the step then.
    expect(Math.abs(measured - predicted)).toBeLessThan(Math.max(0.1 * predicted, 0.005));
  },
  240_000,
);
