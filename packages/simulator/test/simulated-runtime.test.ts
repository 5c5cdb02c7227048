import { expect, test } from "vitest";
import type { Batch } from "@trireme/dataloader";
import { defineRun } from "@trireme/run";
import { simulateStep, simulatedRuntime } from "@trireme/simulator";

const run = defineRun({
  name: "virtual",
  model: { layers: 4, hidden: 64, heads: 4, vocab: 256, context: 32 },
  cluster: { host: "dgx-a100-80", hosts: 1 },
  plan: { pp: 2, dp: 4, globalBatch: 8 },
  steps: 3,
});

function batch(step: number, rows = 8, width = 33): Batch {
  return { step, rows, width, tokens: new Int32Array(rows * width) };
}

test("each step takes the simulated time, and says that it computed no loss", async () => {
  const runtime = simulatedRuntime();
  await runtime.start(run);
  const { model, plan, cluster } = run;
  const expected = simulateStep({ model, plan, cluster }).step;
  for (const step of [0, 1, 2]) {
    const result = await runtime.step({ step, batch: batch(step), learningRate: 1e-3 });
    expect(result).toMatchObject({ step, tokens: 256, seconds: expected, loss: Number.NaN });
    expect(new Set(result.timeline.step)).toEqual(new Set([step]));
  }
  expect(runtime.clock).toBeCloseTo(3 * expected, 12);
  expect(await runtime.evaluate(batch(3))).toEqual({ loss: Number.NaN, tokens: 256 });
  expect(runtime.numeric).toBe(false);
  await runtime.stop();
  await runtime.stop();
});

test("a snapshot brings back step and clock", async () => {
  const runtime = simulatedRuntime();
  await runtime.start(run);
  await runtime.step({ step: 0, batch: batch(0), learningRate: 1e-3 });
  const saved = await runtime.snapshot();
  const { clock } = runtime;
  await runtime.step({ step: 1, batch: batch(1), learningRate: 1e-3 });
  await runtime.restore(saved);
  expect(runtime.clock).toBe(clock);
  expect((await runtime.snapshot()).step).toBe(1);
  const foreign = { step: 1, files: [{ name: "model.safetensors", bytes: new Uint8Array() }] };
  await expect(runtime.restore(foreign)).rejects.toThrow("files: model.safetensors");
});

test("a step before start, or with a batch of another shape, is refused", async () => {
  const runtime = simulatedRuntime();
  const step = { step: 0, batch: batch(0, 4), learningRate: 1e-3 };
  await expect(runtime.step(step)).rejects.toThrow("call start(run) first");
  await runtime.start(run);
  await expect(runtime.step(step)).rejects.toThrow("4 rows of 33 tokens, but the plan takes 8");
});
