/**
 * Plans whose pipelines differ (HexiScale, arXiv 2409.01143) against one rank: gradients after one step
 * within 1e-5 of their norm, losses of 50 steps within 1e-4, and the same bits from run to run.
 */
import { expect, test } from "vitest";
import { embeddedRuntime } from "@trireme/engine";
import type { PipelineStage } from "@trireme/workload";
import { adaptedForms, expectAdapted } from "../adapted-run.ts";
import { expectAlike } from "../emulation.ts";
import { expectEqual, gpt, llama, parallelForm, train, worstGradient } from "../equality.ts";
import {
  type Degrees,
  learningRate,
  smallBatch,
  smallRun,
  trainSteps,
  withRuntime,
} from "../small-run.ts";

/** A pipeline from [ranks, layers] of its stages. */
function pipeline(...stages: readonly (readonly [number, number])[]): PipelineStage[] {
  return stages.map(([tp, layers]) => ({ tp, layers }));
}

const plans: readonly (readonly [
  string,
  Degrees,
  typeof gpt | typeof llama | typeof parallelForm,
])[] = [
  ["one pipeline of tp2 and tp1", { pipelines: [pipeline([2, 3], [1, 1])] }, gpt],
  ["tp1 and tp2, the head wide", { pipelines: [pipeline([1, 1], [2, 3])] }, llama],
  [
    "tp2 and tp1 beside one rank, unequal shares",
    { pipelines: [pipeline([2, 3], [1, 1]), pipeline([1, 4])], pipelineBatches: [5, 3] },
    gpt,
  ],
  [
    "three stages beside two, stages that overlap",
    {
      pipelines: [pipeline([1, 1], [2, 2], [1, 1]), pipeline([1, 3], [2, 1])],
      pipelineBatches: [6, 2],
    },
    llama,
  ],
  [
    "tp4 beside tp2 and tp1, by GPipe, behind computing",
    {
      pipelines: [pipeline([4, 4]), pipeline([2, 2], [1, 2])],
      schedule: "gpipe",
      overlapDataParallel: true,
    },
    gpt,
  ],
  [
    "sequence parallelism over tp2, tp4 and tp1, full recomputation",
    {
      pipelines: [pipeline([2, 1], [4, 2], [1, 1]), pipeline([1, 4])],
      pipelineBatches: [4, 4],
      sequenceParallel: true,
      recompute: "full",
    },
    gpt,
  ],
  [
    "three pipelines of depth 1, 2 and 4, microbatches of 2",
    {
      pipelines: [
        pipeline([2, 4]),
        pipeline([1, 3], [1, 1]),
        pipeline([1, 1], [1, 1], [1, 1], [1, 1]),
      ],
      pipelineBatches: [4, 2, 2],
      microbatch: 2,
    },
    parallelForm,
  ],
];

test.each(plans)(
  "%s train as one rank does",
  (_, plan, form) => expectEqual(plan, form, 50),
  240_000,
);

const unequal = plans[3]![1];

test("the same plan gives the same bits, run to run", async () => {
  const [a, b] = [await train(smallRun(unequal), 20), await train(smallRun(unequal), 20)];
  expect(a.losses).toEqual(b.losses);
  expect(a.first).toEqual(b.first);
});

test("gradients in BF16 differ by no more than their rounding", async () => {
  const one = await train(smallRun({}), 1);
  const many = await train(smallRun({ ...unequal, gradientPrecision: "bf16" }), 1);
  // Each of two terms, and their sum, is rounded to 8 bits.
  expect(worstGradient(many.first, one.first)).toBeLessThan(2 ** -7);
});

test("adapters train on pipelines that differ as on one rank", async () => {
  const [, form, targets] = adaptedForms[1]!;
  await expectAdapted(form, targets, unequal);
  await expectAdapted(form, targets, { ...unequal, sequenceParallel: true });
});

test("a state recovered from the memories left goes on bit for bit", async () => {
  const straight = await withRuntime(smallRun(unequal), (runtime) => trainSteps(runtime, 0, 6));
  const runtime = embeddedRuntime({ memoryCopies: true });
  await runtime.start(smallRun(unequal));
  await trainSteps(runtime, 0, 3);
  const failing = runtime.step({ step: 3, batch: smallBatch(3), learningRate });
  runtime.kill(2);
  await expect(failing).rejects.toThrow("rank 2 ended");
  const recovery = runtime.recover();
  if (!recovery.ok) throw new Error(recovery.reason);
  const again = await withRuntime(smallRun(unequal), async (next) => {
    await next.restore(recovery.snapshot);
    return trainSteps(next, 3, 6);
  });
  expect(again).toEqual(straight.slice(3));
});

test("ranks of pipelines that differ can be emulated", () =>
  expectAlike(unequal, gpt, [[0], [1, 6]]));
