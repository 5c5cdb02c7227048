import { setTimeout } from "node:timers/promises";
import { expect, test } from "vitest";
import { embeddedRuntime } from "@trireme/engine";
import { learningRate, smallBatch, smallRun, trainSteps, withRuntime } from "./small-run.ts";

test("a state recovered from the memories left goes on bit for bit, on any layout", async () => {
  const run = smallRun({ dp: 2, pp: 2, zero: 1 });
  const straight = await withRuntime(run, (runtime) => trainSteps(runtime, 0, 6));
  const runtime = embeddedRuntime({ memoryCopies: true });
  await runtime.start(run);
  await trainSteps(runtime, 0, 3);
  const failing = runtime.step({ step: 3, batch: smallBatch(3), learningRate });
  runtime.kill(2);
  await expect(failing).rejects.toThrow("rank 2 ended");
  const recovery = runtime.recover();
  if (!recovery.ok) throw new Error(recovery.reason);
  const { snapshot } = recovery;
  expect(snapshot.step).toBe(3);
  const goOn = (plan: Parameters<typeof smallRun>[0]): Promise<number[]> =>
    withRuntime(smallRun(plan), async (next) => {
      await next.restore(snapshot);
      return trainSteps(next, 3, 6);
    });
  expect(await goOn({ dp: 2, pp: 2, zero: 1 })).toEqual(straight.slice(3));
  // Another layout adds up in another order, in f32.
  (await goOn({ tp: 2, zero: 3 })).forEach((loss, i) =>
    expect(loss).toBeCloseTo(straight[3 + i]!, 4),
  );
});

test("without copies, and with one rank, there is nothing to recover", async () => {
  for (const [plan, memoryCopies] of [
    [{ dp: 2 }, false],
    [{}, true],
  ] as const) {
    const runtime = embeddedRuntime({ memoryCopies });
    await runtime.start(smallRun(plan));
    await trainSteps(runtime, 0, 1);
    await runtime.stop();
    expect(runtime.recover()).toMatchObject({ ok: false });
  }
});

test("nothing is recovered of a rank that dies together with the one that has its copy", async () => {
  const runtime = embeddedRuntime({ memoryCopies: true });
  await runtime.start(smallRun({ dp: 2 }));
  await trainSteps(runtime, 0, 1);
  const failing = runtime.step({ step: 1, batch: smallBatch(1), learningRate });
  runtime.kill(0);
  runtime.kill(1);
  expect(runtime.recover()).toMatchObject({ ok: false });
  await expect(failing).rejects.toThrow(/rank \d ended/);
  expect(runtime.recover()).toMatchObject({ ok: false });
});

test("a rank that stalls for good is named when its peers' patience ends, and ended", async () => {
  // The first stage sleeps for minutes; the second waits for it.
  const runtime = embeddedRuntime({ deadline: 0.5, rehearse: { F: 600, I: 0, W: 0 } });
  await runtime.start(smallRun({ pp: 2 }));
  const begin = performance.now();
  const step = runtime.step({ step: 0, batch: smallBatch(0), learningRate });
  await expect(step).rejects.toThrow(
    /rank 1 waited 5[\d.]+ ms for rank 0.*; rank 0 did not answer train in the 0.5 s after that$/,
  );
  expect(performance.now() - begin).toBeLessThan(10_000);
});

test("a rank for which nobody waits is ended by stop, whatever it is doing", async () => {
  const runtime = embeddedRuntime({ deadline: 0.1, rehearse: { F: 600, I: 0, W: 0 } });
  await runtime.start(smallRun({}));
  const step = runtime.step({ step: 0, batch: smallBatch(0), learningRate });
  await Promise.all([
    expect(step).rejects.toThrow("rank 0 was stopped"),
    // Longer than the deadline, which is of waits for peers.
    setTimeout(200).then(() => runtime.stop()),
  ]);
});
