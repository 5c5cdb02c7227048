/** Memory over a long run: what a rank has used after a few steps is all it will use. */
import { expect, test } from "vitest";
import { deepSeek, gpt } from "../equality.ts";
import { smallRun, trainSteps, withRuntime } from "../small-run.ts";

test.each([
  ["a dense model, ZeRO 3 on two stages", { dp: 2, pp: 2, zero: 3, schedule: "zb-h1" }, gpt],
  ["experts, whose rows differ from step to step", { dp: 2, ep: 2, recompute: "full" }, deepSeek],
] as const)("%s: nothing grows over 1,000 steps", async (_, plan, form) => {
  await withRuntime(smallRun(plan, form), async (runtime) => {
    await trainSteps(runtime, 0, 200);
    const early = await runtime.memory();
    await trainSteps(runtime, 200, 1000);
    const late = await runtime.memory();
    // Rows of experts may for the first time be more than ever before: by a block or two.
    late.forEach((bytes, rank) => expect(bytes).toBeLessThanOrEqual(early[rank]! * 1.02));
    if (form === gpt) expect(late).toEqual(early);
  });
});
