import { expect, test } from "vitest";
import { spans, statistics } from "@trireme/timeline";
import { embeddedRuntime, wholeModel } from "@trireme/engine";
import { latentForm, mixtral } from "./equality.ts";
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

test("experts that are dealt or shared out generate the same text as on one rank", async () => {
  const prompt = Int32Array.of(1, 4, 7);
  const results = [];
  for (const degrees of [
    {},
    { dp: 2, ep: 2 },
    { dp: 2, pp: 2, ep: 2 },
    // Each expert on two replicas, and on two ranks that share out the tokens.
    { dp: 2, etp: 2 },
    { cp: 2, etp: 2 },
  ]) {
    const run = smallRun(degrees, mixtral);
    results.push(
      await withRuntime(run, async (runtime) => {
        await trainSteps(runtime, 0, 2);
        const text = await runtime.generate!({ prompt, tokens: 8, temperature: 0, seed: 1 });
        return [...text];
      }),
    );
  }
  expect(results[0]).toHaveLength(8);
  for (const text of results.slice(1)) expect(text).toEqual(results[0]);
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

test("gradients count as bytes where replicas give them to each other, and nowhere else", async () => {
  const given = (plan: Parameters<typeof smallRun>[0]): Promise<number> =>
    withRuntime(smallRun(plan), async (runtime) => {
      const { timeline } = await runtime.step({ step: 0, batch: smallBatch(0), learningRate });
      const reduced = [...spans(timeline)].filter(({ action }) => action.includes("REDUCE_GRAD"));
      expect(reduced.length).toBeGreaterThan(0);
      return reduced.reduce((sum, { bytes }) => sum + bytes, 0);
    });
  expect(await given({})).toBe(0);
  expect(await given({ dp: 2 })).toBeGreaterThan(0);
});

test.each([
  [
    { pp: 2, vocabulary: "one-barrier" },
    "does not carry out vocabulary one-barrier; use no vocabulary",
  ],
  [{ fusedLoss: false }, "does not carry out fusedLoss false; use no fusedLoss"],
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
  [{ gatheredCopies: true }, "gatheredCopies; use no gatheredCopies"],
  [{ momentPrecision: "bf16" }, "momentPrecision bf16; use momentPrecision fp32"],
  [{ fusedRotary: false }, "fusedRotary false; use no fusedRotary"],
  [{ matrixPrecision: "fp4" }, "matrixPrecision fp4; use matrixPrecision fp8"],
  [{ matrixPrecision: "int8" }, "matrixPrecision int8; use matrixPrecision fp8"],
  [{ document: 8 }, "document 8; use no document"],
  [{ attentionPrecision: "fp8" }, "attentionPrecision fp8; use no attentionPrecision"],
  [{ activationPrecision: "fp8" }, "activationPrecision fp8; use no activationPrecision"],
  [{ sequence: 17 }, "sequence 17 on a model with context 16"],
] as const)("a plan it cannot carry out is refused in one line: %j", async (change, message) => {
  const run = smallRun({});
  const odd = { ...run, plan: { ...run.plan, ...change } };
  await expect(embeddedRuntime().start(odd)).rejects.toThrow(message);
});

test.each([
  [
    { pattern: "*-" },
    "does not carry out pattern *-; use a model of attention and feed-forward blocks",
  ],
  [{ activationClamp: 7 }, "activationClamp 7; use activationClamp 0"],
  [{ attentionGate: true }, "a gate on attention; use attentionGate false"],
] as const)("a model it cannot carry out is refused in one line: %j", async (change, message) => {
  const run = smallRun({});
  const odd = { ...run, model: { ...run.model, ...change } };
  await expect(embeddedRuntime().start(odd)).rejects.toThrow(message);
});

test.each([
  [{ adapter: { rank: 2, base: "fp8" } }, "adapter.base fp8; use adapter.base int8"],
  [{ adapter: { rank: 2, dropout: 0.1 } }, "adapter.dropout 0.1; use adapter.dropout 0"],
  [
    { ...latentForm, adapter: { rank: 2, targets: ["key-value-up"] } },
    "an adapter of key-value-up in latent attention; use adapter.targets output",
  ],
] as const)("a model it cannot train is refused in one line: %j", async (form, message) => {
  await expect(embeddedRuntime().start(smallRun({}, form))).rejects.toThrow(message);
});

test("strange batches, rates, prompts and calls out of order are refused", async () => {
  const idle = embeddedRuntime();
  for (const early of [idle.snapshot(), idle.gradients(), idle.memory()]) {
    await expect(early).rejects.toThrow("call start(run) first");
  }
  expect(() => idle.kill(0)).toThrow("call start(run) first");
  await withRuntime(smallRun({}), async (runtime) => {
    await expect(runtime.start(smallRun({}))).rejects.toThrow("has been started");
    const batch = smallBatch(0);
    const short = { ...batch, tokens: batch.tokens.subarray(1) };
    await expect(runtime.step({ step: 0, batch: short, learningRate })).rejects.toThrow(
      "135 tokens",
    );
    const still = { step: 0, batch, learningRate: Number.NaN };
    await expect(runtime.step(still)).rejects.toThrow("learning rate NaN");
    const turned = { ...batch, rows: 4, width: 34 };
    await expect(runtime.step({ step: 0, batch: turned, learningRate })).rejects.toThrow(
      "the batch is of 4 × 34 tokens, the plan asks for 8 × (16 + 1) = 136",
    );
    batch.tokens[5] = vocab;
    await expect(runtime.evaluate(batch)).rejects.toThrow("token 31 is outside");
    const request = { prompt: Int32Array.of(1), tokens: 2, temperature: 0, seed: 0 };
    for (const [change, message] of [
      [{ prompt: new Int32Array(0) }, "the prompt is empty"],
      [{ prompt: Int32Array.of(1, -1) }, "token -1 of the prompt is outside"],
      [{ tokens: -1 }, "tokens -1 to generate must be an integer in 0..16777215"],
      [{ tokens: 1.5 }, "tokens 1.5 to generate"],
      [{ tokens: 2 ** 31 }, "tokens 2147483648 to generate"],
      [{ temperature: -1 }, "temperature -1 must be a finite number of at least 0"],
      [{ temperature: Number.NaN }, "temperature NaN"],
      [{ temperature: Infinity }, "temperature Infinity"],
      [{ seed: 0.5 }, "seed 0.5 is not a safe integer"],
    ] as const) {
      await expect(runtime.generate!({ ...request, ...change })).rejects.toThrow(message);
    }
    await expect(runtime.restore({ step: 1, files: [] })).rejects.toThrow(
      "lacks any safetensors file",
    );
    // The run goes on after all this, even where it has no numbers to choose tokens by.
    expect(await runtime.generate!({ ...request, tokens: 0 })).toHaveLength(0);
    expect(await runtime.generate!(request)).toHaveLength(2);
    await runtime.step({ step: 0, batch: smallBatch(0), learningRate: 1e38 });
    for (const temperature of [0, 1]) {
      await expect(runtime.generate!({ ...request, temperature })).rejects.toThrow(
        "the model's logits of token 0 of the text are no finite numbers",
      );
    }
    expect(await runtime.memory()).toHaveLength(1);
  });
});

test("a runtime that is started again takes the steps of a fresh one", async () => {
  const runtime = embeddedRuntime();
  const run = smallRun({});
  await runtime.start(run);
  const fresh = await trainSteps(runtime, 0, 2);
  await runtime.stop();
  await runtime.start(run);
  expect(runtime.strikes).toEqual([]);
  const snapshot = await takeSnapshot(runtime);
  expect(snapshot.step).toBe(0);
  // Weights without moments are a state before the first step alone.
  await runtime.restore({
    step: 0,
    files: [{ name: "model.safetensors", bytes: wholeModel(snapshot) }],
  });
  expect(await trainSteps(runtime, 0, 2)).toEqual(fresh);
  await runtime.stop();
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
