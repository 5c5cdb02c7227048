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

test("a rank that stalls is named when its peers' patience ends", async () => {
  // The first stage sleeps longer than the second waits for it.
  const runtime = embeddedRuntime({ deadline: 0.5, rehearse: { F: 2, I: 0, W: 0 } });
  await runtime.start(smallRun({ pp: 2 }));
  const begin = performance.now();
  const step = runtime.step({ step: 0, batch: smallBatch(0), learningRate });
  await expect(step).rejects.toThrow(/rank 1 waited 5[\d.]+ ms for rank 0/);
  expect(performance.now() - begin).toBeLessThan(10_000);
});
