/** Ranks killed at random moments, again and again: no step is lost, none is taken twice. */
import { expect, test } from "vitest";
import { createRng } from "@trireme/core";
import { embeddedRuntime } from "@trireme/engine";
import type { Snapshot } from "@trireme/runtime";
import {
  learningRate,
  smallBatch,
  smallRun,
  takeSnapshot,
  trainSteps,
  withRuntime,
} from "../small-run.ts";

const kills = 100;

test(`${kills} kills in a row, each recovered from memory, end with the bits of a run without`, async () => {
  const run = smallRun({ dp: 2, zero: 1 }, { layers: 2 });
  const rng = createRng(13);
  const losses = new Map<number, number>();
  let done = 0;
  let snapshot: Snapshot | undefined;
  for (let kill = 0; kill < kills; kill++) {
    const runtime = embeddedRuntime({ memoryCopies: true });
    await runtime.start(run);
    if (snapshot !== undefined) await runtime.restore(snapshot);
    // At least one step, so that each generation gets on, and then death at some moment of a step.
    const steps = 1 + rng.integer(3);
    for (let i = 0; i < steps; i++, done++) losses.set(done, await step(runtime, done));
    const dying = step(runtime, done).catch(() => undefined);
    await new Promise((resolve) => setTimeout(resolve, rng.float() * 30));
    runtime.kill(rng.integer(2));
    const loss = await dying;
    if (loss !== undefined) losses.set(done++, loss);
    // Until a request fails, nobody has seen the death.
    await expect(takeSnapshot(runtime)).rejects.toThrow(/rank \d|start\(run\)/);
    const recovery = runtime.recover();
    if (!recovery.ok) throw new Error(recovery.reason);
    // A step may be whole in memory although its result was never told.
    expect([done, done + 1]).toContain(recovery.snapshot.step);
    ({ snapshot } = recovery);
    done = snapshot.step;
  }
  await withRuntime(run, async (straight) => {
    const wanted = await trainSteps(straight, 0, done);
    for (const [at, loss] of losses) expect(loss).toBe(wanted[at]);
    expect((await takeSnapshot(straight)).files).toEqual(snapshot!.files);
  });
});

async function step(runtime: ReturnType<typeof embeddedRuntime>, at: number): Promise<number> {
  return (await runtime.step({ step: at, batch: smallBatch(at), learningRate })).loss;
}
