/** Training with states of the optimizer on the host, beside training without. */
import type { ModelOptions } from "@trireme/workload";
import { expect } from "vitest";
import { type Degrees, smallRun, takeSnapshot, trainSteps, withRuntime } from "./small-run.ts";

/** Losses, snapshots and what follows from them have the same bits, wherever states lie. */
export async function expectSameBits(plan: Degrees, form: Partial<ModelOptions>): Promise<void> {
  /** Eight steps, of which the last three are repeated from a snapshot of the fifth. */
  const train = (offload: "none" | "optimizer") =>
    withRuntime(smallRun({ ...plan, offload }, form), async (runtime) => {
      const losses = await trainSteps(runtime, 0, 5);
      const snapshot = await takeSnapshot(runtime);
      losses.push(...(await trainSteps(runtime, 5, 8)));
      // What is restored reaches the masters, which have moved on: the next update starts from there.
      await runtime.restore(snapshot);
      return { losses, files: snapshot.files, again: await trainSteps(runtime, 5, 8) };
    });
  const [device, host] = [await train("none"), await train("optimizer")];
  expect(host.losses).toEqual(device.losses);
  expect(host.files).toEqual(device.files);
  expect(host.again).toEqual(host.losses.slice(5));
}
