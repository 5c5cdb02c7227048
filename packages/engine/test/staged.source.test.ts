/** Plans whose pipelines differ (HexiScale, arXiv 2409.01143) against one rank. */
import { expect, test } from "vitest";
import { checkPlan, embeddedRuntime } from "@trireme/engine";
import { spans } from "@trireme/timeline";
import { expectEqual, gpt, llama } from "./equality.ts";
import { learningRate, smallBatch, smallRun, trainSteps, withRuntime } from "./small-run.ts";

/** A stage of two ranks and one of one; beside it all layers on one rank, with a smaller batch. */
const mixed = {
  pipelines: [
    [
      { tp: 2, layers: 3 },
      { tp: 1, layers: 1 },
    ],
    [{ tp: 1, layers: 4 }],
  ],
  pipelineBatches: [5, 3],
};

// More plans are in test/slow/staged.source.test.ts.
test.each([
  ["tied", gpt],
  ["untied", llama],
] as const)("a tp2 and a tp1 stage beside one rank train as one rank does, %s", (_, form) =>
  expectEqual(mixed, form, 20),
);

test("what is trained on pipelines that differ goes on on any layout, and the other way", async () => {
  const run = smallRun(mixed);
  const [straight, halfway] = await withRuntime(run, async (runtime) => {
    const before = await trainSteps(runtime, 0, 3);
    const snapshot = await runtime.snapshot();
    await snapshot.taken;
    return [[...before, ...(await trainSteps(runtime, 3, 6))], snapshot];
  });
  const goOn = (plan: Parameters<typeof smallRun>[0]): Promise<number[]> =>
    withRuntime(smallRun(plan), async (next) => {
      await next.restore(halfway);
      return trainSteps(next, 3, 6);
    });
  expect(await goOn(mixed)).toEqual(straight.slice(3));
  // Another layout adds up in another order, in f32.
  (await goOn({ dp: 2, zero: 1 })).forEach((loss, i) =>
    expect(loss).toBeCloseTo(straight[3 + i]!, 4),
  );
});

test("spans tell the bytes that a rank gives to sums and to other stages, and those only", async () => {
  const plan = { ...mixed, sequenceParallel: true, reductionPrecision: "bf16" } as const;
  await withRuntime(smallRun(plan, llama), async (runtime) => {
    const { timeline } = await runtime.step({ step: 0, batch: smallBatch(0), learningRate });
    const bytes = (rank: number, end: string): number =>
      [...spans(timeline)]
        .filter((span) => span.rank === rank && span.action.includes(end))
        .reduce((sum, span) => sum + span.bytes, 0);
    const gradients = await runtime.gradients();
    const numbers = [...gradients.values()].reduce((sum, { length }) => sum + length, 0);
    // The rank that holds all layers gives every gradient once, in two bytes; those of the six norms
    // that the ranks of the stage of two both hold to each of them.
    expect(bytes(3, "REDUCE_GRAD")).toBe(2 * (numbers + 6 * 32));
    // Five samples of 16 tokens, 32 wide, by the leader of the stage of two.
    const passed = 5 * 16 * 32 * 4;
    for (const action of ["SEND_F", "RECV_B"]) {
      expect([0, 1, 2, 3].map((rank) => bytes(rank, action))).toEqual([passed, 0, 0, 0]);
    }
    for (const action of ["SEND_B", "RECV_F"]) {
      expect([0, 1, 2, 3].map((rank) => bytes(rank, action))).toEqual([0, 0, passed, 0]);
    }
  });
});

test("evaluation and generation are those of one rank", async () => {
  const request = { prompt: Int32Array.of(1, 4, 7), tokens: 6, temperature: 0, seed: 1 };
  const told = (plan: Parameters<typeof smallRun>[0]): Promise<{ loss: number; text: number[] }> =>
    withRuntime(smallRun(plan), async (runtime) => {
      await trainSteps(runtime, 0, 4);
      const { loss } = await runtime.evaluate(smallBatch(4));
      return { loss, text: [...(await runtime.generate!(request))] };
    });
  const [one, many] = [await told({}), await told(mixed)];
  expect(many.loss).toBeCloseTo(one.loss, 4);
  expect(many.text).toEqual(one.text);
});

test("ZeRO, LAMB and delayed scales over pipelines that differ are refused", async () => {
  const { model, plan } = smallRun({ ...mixed, zero: 1 });
  const words = "does not carry out ZeRO 1 over pipelines that differ; use zero 0";
  expect(() => checkPlan(model, plan)).toThrow(words);
  await expect(embeddedRuntime().start(smallRun({ ...mixed, zero: 1 }))).rejects.toThrow(words);
  const run = smallRun({ ...mixed, matrixPrecision: "fp8" });
  const delayed = { ...run, engine: { ...run.engine, fp8Scaling: "delayed" as const } };
  await expect(embeddedRuntime().start(delayed)).rejects.toThrow(
    "delayed FP8 scales over pipelines that differ; use engine.fp8Scaling current",
  );
  const lamb = { ...run, optimizer: { ...run.optimizer, kind: "lamb" as const } };
  await expect(embeddedRuntime().start(lamb)).rejects.toThrow("lamb over pipelines that differ");
});
