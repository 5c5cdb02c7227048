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
    // A busy machine only ever adds idle time, and more steps leave less of that.
    let difference = Infinity;
    for (let attempt = 0; attempt < 5 && difference >= 1; attempt++) {
      const { measured, predicted } = await idleFractions({ pp: 4, vpp, schedule });
      // A schedule without any idle time has nothing to be 10 % of: half a per cent of the step then.
      const allowed = Math.max(0.1 * predicted, 0.005);
      difference = Math.min(difference, Math.abs(measured - predicted) / allowed);
    }
    expect(difference).toBeLessThan(1);
  },
  240_000,
);
