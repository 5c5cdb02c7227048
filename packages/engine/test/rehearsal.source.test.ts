import { type Rehearsal, embeddedRuntime } from "@trireme/engine";
import type { Snapshot } from "@trireme/runtime";
import { expect, test } from "vitest";
import { idleFractions } from "./rehearsal.ts";
import { smallRun, takeSnapshot, withRuntime } from "./small-run.ts";

// How near the waits come to what replay says is a matter of a quiet machine: test/slow holds it to 10 %.
test("on four stages ZB-H1 idles less than 1F1B", async () => {
  const plain = await idleFractions({ pp: 4, schedule: "1f1b" });
  const split = await idleFractions({ pp: 4, schedule: "zb-h1" });
  expect(split.measured).toBeLessThan(plain.measured);
  expect(split.predicted).toBeLessThan(plain.predicted);
});

test("warm-up steps of a rehearsal take no time of its actions and leave no trace", async () => {
  const run = smallRun({ dp: 2, zero: 1 });
  const snapshot = (rehearse: Rehearsal): Promise<Snapshot["files"]> =>
    withRuntime(run, async (runtime) => (await takeSnapshot(runtime)).files, { rehearse });
  const seconds = { F: 60, I: 60, W: 60 };
  expect(await snapshot({ ...seconds, warmUps: 2 })).toEqual(await snapshot(seconds));
});

test("times that no action takes are refused, and warm-ups that nothing could repeat", async () => {
  const seconds = { F: 0, I: 0, W: 0 };
  const start = (rehearse: Rehearsal, more = {}): Promise<void> =>
    embeddedRuntime({ rehearse, ...more }).start(smallRun({ pp: 2 }));
  await expect(start({ ...seconds, I: -1 })).rejects.toThrow("I of a rehearsal is -1 s");
  await expect(start({ ...seconds, W: Number.NaN })).rejects.toThrow("W of a rehearsal is NaN s");
  await expect(start({ ...seconds, F: 3e6 })).rejects.toThrow("less than 2147483.648 s");
  await expect(start({ ...seconds, warmUps: 0.5 })).rejects.toThrow("warmUps 0.5 must be");
  const recorded = start({ ...seconds, warmUps: 1 }, { record: {} });
  await expect(recorded).rejects.toThrow("record excludes warmUps of rehearse");
});
