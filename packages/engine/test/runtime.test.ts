import { expect, test } from "vitest";
import { statistics } from "@trireme/timeline";
import { embeddedRuntime } from "@trireme/engine";
import {
  learningRate,
  smallBatch,
  smallRun,
  takeSnapshot,
  trainSteps,
  vocab,
  withRuntime,
} from "./small-run.ts";

test("evaluation and generation are the same on every layout, and change nothing", async () => {
  const prompt = Int32Array.of(1, 4, 7);
  const results = [];
  for (const degrees of [{}, { dp: 2, pp: 2 }, { pp: 2, vpp: 2, dp: 2 }]) {
    results.push(
      await withRuntime(smallRun(degrees), async (runtime) => {
        await trainSteps(runtime, 0, 3);
        const before = (await takeSnapshot(runtime)).files;
        const { loss, tokens } = await runtime.evaluate(smallBatch(99));
        const likely = await runtime.generate!({ prompt, tokens: 24, temperature: 0, seed: 1 });
        const drawn = await runtime.generate!({ prompt, tokens: 24, temperature: 1, seed: 1 });
        expect((await takeSnapshot(runtime)).files).toEqual(before);
        expect(tokens).toBe(128);
        expect(drawn.every((token) => token >= 0 && token < vocab)).toBe(true);
        return { loss, likely: [...likely] };
      }),
    );
  }
  expect(results[0]!.likely).toHaveLength(24);
  for (const { loss, likely } of results.slice(1)) {
    expect(loss).toBeCloseTo(results[0]!.loss, 4);
    expect(likely).toEqual(results[0]!.likely);
  }
});

test("experts that are dealt out over replicas generate the same text as on one rank", async () => {
  const prompt = Int32Array.of(1, 4, 7);
  const results = [];
  for (const degrees of [{}, { dp: 2, ep: 2 }, { dp: 2, pp: 2, ep: 2 }]) {
    const run = smallRun(degrees, { experts: { count: 4, active: 2 } });
    results.push(
      await withRuntime(run, async (runtime) => {
        await trainSteps(runtime, 0, 2);
        const text = await runtime.generate!({ prompt, tokens: 8, temperature: 0, seed: 1 });
        return [...text];
      }),
    );
  }
  expect(results[0]).toHaveLength(8);
  expect(results[1]).toEqual(results[0]);
  expect(results[2]).toEqual(results[0]);
});

test("spans of a step lie within it, on every rank", async () => {
  await withRuntime(smallRun({ dp: 2, pp: 2 }), async (runtime) => {
    await trainSteps(runtime, 0, 2);
    const { timeline, seconds } = await runtime.step({
      step: 2,
      batch: smallBatch(2),
      learningRate,
    });
    const { makespan, ranks } = statistics(timeline);
    expect(ranks).toHaveLength(4);
    expect(makespan).toBeLessThanOrEqual(seconds);
    for (const { busy } of ranks) expect(busy).toBeGreaterThan(0);
  });
});

test.each([
  [{ recompute: "operators" }, "does not carry out recompute operators; use recompute none"],
  [{ tp: 2, vocabParallelLoss: false }, "vocabParallelLoss false"],
  [{ tp: 2, scatterGather: true }, "scatterGather; use sequenceParallel instead"],
  [{ precision: "fp16" }, "precision fp16; use precision fp32 or bf16"],
  [{ cp: 8, contextExchange: "all-to-all" }, "of 4 key heads; use contextExchange ring"],
  [{ dropout: 0.1 }, "dropout 0.1"],
  [{ flashAttention: false }, "flashAttention false; use flashAttention true"],
  [{ overlapPointToPoint: true }, "overlapPointToPoint"],
  [{ cudaGraphs: "all" }, "cudaGraphs all; use cudaGraphs none"],
  [{ fusedNorm: false }, "fusedNorm false; use fusedNorm true"],
  [{ matrixPrecision: "fp4" }, "matrixPrecision fp4; use matrixPrecision fp8"],
  [{ sequence: 17 }, "sequence 17 on a model with context 16"],
] as const)("a plan it cannot carry out is refused in one line: %j", async (change, message) => {
  const run = smallRun({});
  const odd = { ...run, plan: { ...run.plan, ...change } };
  await expect(embeddedRuntime().start(odd)).rejects.toThrow(message);
});

test("strange batches, prompts and calls out of order are refused", async () => {
  await expect(embeddedRuntime().snapshot()).rejects.toThrow("call start(run) first");
  await withRuntime(smallRun({}), async (runtime) => {
    await expect(runtime.start(smallRun({}))).rejects.toThrow("has been started");
    const batch = smallBatch(0);
    const short = { ...batch, tokens: batch.tokens.subarray(1) };
    await expect(runtime.step({ step: 0, batch: short, learningRate })).rejects.toThrow(
      "135 tokens",
    );
    batch.tokens[5] = vocab;
    await expect(runtime.evaluate(batch)).rejects.toThrow("token 31 is outside");
    const request = { tokens: 1, temperature: 0, seed: 0 };
    await expect(runtime.generate!({ ...request, prompt: new Int32Array(0) })).rejects.toThrow(
      "prompt is empty",
    );
    await expect(runtime.restore({ step: 1, files: [] })).rejects.toThrow(
      "lacks any safetensors file",
    );
  });
});

test("a learning rate that is no number is refused before it reaches the weights", async () => {
  await withRuntime(smallRun({}), async (runtime) => {
    const input = { step: 0, batch: smallBatch(0), learningRate: Number.NaN };
    await expect(runtime.step(input)).rejects.toThrow("learning rate NaN");
  });
});

test("a rank that fails ends all ranks with an error that names it", async () => {
  // The table of 60 million tokens does not fit the 4 GiB that a rank can address.
  const run = smallRun({ dp: 2, pp: 2 }, { vocab: 60e6 });
  const runtime = embeddedRuntime();
  const begin = performance.now();
  await expect(runtime.start(run)).rejects.toThrow(/^rank \d: a rank needs .* GiB, but its memory/);
  // Peers hear of it at once and do not sit out their deadline of a minute.
  expect(performance.now() - begin).toBeLessThan(30_000);
  await runtime.stop();
});
