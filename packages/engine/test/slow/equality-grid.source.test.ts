/**
 * Plans over up to 8 ranks against one rank: each parallelism alone, all pairs, several triples, all
 * schedules. Bounds: gradients after one step within 1e-5 of their norm, losses within 1e-4.
 */
import { expect, test } from "vitest";
import { type ModelOptions, type PipelineSchedule, pipelineSchedules } from "@trireme/workload";
import {
  expectEqual,
  gpt,
  latentForm,
  latentLite,
  llama,
  neoxForm,
  parallelForm,
  qwenForm,
  train,
} from "../equality.ts";
import { type Degrees, smallRun } from "../small-run.ts";

const steps = 50;

const twoChunks = new Set<PipelineSchedule>(["zb-v", "v-half", "v-min", "dualpipe-v"]);
const manyChunks = new Set<PipelineSchedule>([
  "interleaved",
  "dfs-bfs",
  "looped-bfs",
  "interleaved-zero-bubble",
]);

/** Every schedule over 4 stages. */
const schedules: readonly Degrees[] = pipelineSchedules.map((schedule) =>
  twoChunks.has(schedule) || manyChunks.has(schedule)
    ? { pp: 2, vpp: 2, schedule }
    : { pp: schedule === "dualpipe" || schedule === "chimera" ? 2 : 4, schedule },
);

const alone: readonly Degrees[] = [
  { dp: 2 },
  { dp: 8 },
  { dp: 4, zero: 1 },
  { dp: 4, zero: 2 },
  { dp: 4, zero: 3 },
  { tp: 2 },
  { tp: 2, sequenceParallel: true },
  { cp: 2, contextExchange: "ring" },
  { cp: 2, contextExchange: "all-gather" },
  { cp: 2, contextExchange: "all-to-all" },
  { cp: 8, contextExchange: "ring" },
  { recompute: "selective" },
  { recompute: "full" },
];

const pairs: readonly Degrees[] = [
  { dp: 2, pp: 2 },
  { dp: 2, pp: 4, stageLayers: [2, 1, 1, 0] },
  { pp: 2, vpp: 3, accountForEmbedding: true, accountForLoss: true },
  // Eight microbatches in groups of four.
  { pp: 3, vpp: 2, accountForEmbedding: true, accountForLoss: true },
  { pp: 3, schedule: "interleaved-zero-bubble", vpp: 2, stageLayers: [0, 1, 1, 1, 1, 0] },
  { pp: 4, tp: 2, stageLayers: [0, 4, 0, 0], schedule: "zb-h1", recompute: "full" },
  { pp: 4, dp: 2, zero: 3, stageLayers: [0, 2, 2, 0], overlapDataParallel: true },
  { dp: 2, pp: 2, zero: 3, overlapDataParallel: true },
  { dp: 2, tp: 2 },
  { dp: 2, tp: 2, zero: 2, sequenceParallel: true, overlapDataParallel: true },
  { dp: 2, cp: 2, zero: 1 },
  { dp: 2, cp: 4, zero: 3, contextExchange: "all-gather" },
  { tp: 2, pp: 4, sequenceParallel: true, schedule: "zb-h1" },
  { tp: 2, pp: 2, vpp: 2, schedule: "zb-v" },
  { tp: 2, cp: 2, sequenceParallel: true },
  { tp: 2, cp: 2, contextExchange: "all-gather", recompute: "selective" },
  { cp: 2, pp: 2, schedule: "dualpipe" },
  { cp: 2, pp: 4, contextExchange: "all-to-all", recompute: "full" },
  { dp: 2, pp: 2, zero: 2, schedule: "dualpipe" },
];

const triples: readonly Degrees[] = [
  { dp: 2, tp: 2, pp: 2, sequenceParallel: true, zero: 1 },
  { dp: 2, tp: 2, pp: 2, vpp: 2, zero: 3, recompute: "full", overlapDataParallel: true },
  { dp: 2, cp: 2, pp: 2, zero: 2, schedule: "zb-h2" },
  { dp: 2, cp: 2, tp: 2, zero: 3, sequenceParallel: true, recompute: "selective" },
  { cp: 2, tp: 2, pp: 2, vpp: 2, schedule: "dualpipe-v", sequenceParallel: true },
  { cp: 2, tp: 2, pp: 2, contextExchange: "all-to-all", microbatch: 2 },
];

const forms: readonly (readonly [Degrees, Partial<ModelOptions>])[] = [
  [{ tp: 2, cp: 2, sequenceParallel: true }, parallelForm],
  [{ cp: 4, contextExchange: "all-gather", dp: 2 }, parallelForm],
  [
    { tp: 2, cp: 2, pp: 2, order: ["pp", "dp", "cp", "tp"] },
    { ...gpt, block: "parallel" },
  ],
];

const biased: readonly (readonly [Degrees, Partial<ModelOptions>])[] = [
  [{ tp: 2 }, neoxForm],
  [{ tp: 2, sequenceParallel: true, cp: 2, pp: 2, schedule: "zb-h1" }, neoxForm],
  [{ dp: 2, cp: 2, zero: 3, overlapDataParallel: true }, neoxForm],
  [{ dp: 2, ep: 2, zero: 1 }, qwenForm],
  [{ tp: 2, sequenceParallel: true, pp: 2, etp: 2, schedule: "zb-h1" }, qwenForm],
  [{ tp: 2, sequenceParallel: true, cp: 2, ep: 4, etp: 1, recompute: "selective" }, qwenForm],
];

const latent: readonly (readonly [Degrees, Partial<ModelOptions>])[] = [
  [{ tp: 2 }, latentLite],
  [{ tp: 4, sequenceParallel: true }, latentLite],
  [
    {
      pipelines: [
        [
          { tp: 2, layers: 3 },
          { tp: 1, layers: 1 },
        ],
        [{ tp: 1, layers: 4 }],
      ],
      pipelineBatches: [5, 3],
    },
    latentLite,
  ],
  [{ cp: 4, contextExchange: "ring" }, latentLite],
  [{ cp: 2, contextExchange: "all-to-all", pp: 2, recompute: "selective" }, latentLite],
  [{ pp: 4, schedule: "zb-h2", recompute: "selective" }, latentLite],
  [
    { dp: 2, pp: 2, vpp: 2, zero: 3, schedule: "dualpipe-v", overlapDataParallel: true },
    latentForm,
  ],
  [{ tp: 2, sequenceParallel: true, cp: 2, dp: 2, zero: 2, etp: 1, ep: 2 }, latentForm],
  [{ tp: 2, cp: 2, pp: 2, contextExchange: "all-gather", recompute: "selective" }, latentLite],
  [{ tp: 2, sequenceParallel: true, pp: 2, schedule: "zb-h1", recompute: "full" }, latentForm],
];

const plans = [...schedules, ...alone, ...pairs, ...triples];

test.each(
  [...forms, ...biased, ...latent].map(
    ([plan, form]) => [JSON.stringify(plan), plan, form] as const,
  ),
)(
  "%s trains as one rank does, in other forms",
  (_, plan, form) => expectEqual(plan, form, steps),
  240_000,
);

test("the grid has at least 40 plans", () => {
  expect(plans.length).toBeGreaterThanOrEqual(40);
});

test.each(plans.map((plan, i) => [JSON.stringify(plan), plan, i] as const))(
  "%s trains as one rank does",
  // GPT and Llama forms in turn; Ulysses needs as many key heads as ranks.
  (_, plan, i) => expectEqual(plan, i % 2 === 0 || plan.tp === 2 ? gpt : llama, steps),
  240_000,
);

test.each([
  { dp: 2, tp: 2, pp: 2, zero: 3, sequenceParallel: true, overlapDataParallel: true },
  { cp: 4, dp: 2, zero: 2 },
  { pp: 2, vpp: 2, dp: 2, schedule: "dualpipe-v" },
] as const)("the same plan gives the same bits, run to run: %j", async (plan) => {
  const [a, b] = [await train(smallRun(plan), 20), await train(smallRun(plan), 20)];
  expect(a.losses).toEqual(b.losses);
  expect(a.first).toEqual(b.first);
});

test("sums of gradients behind products leave the bits as they are on the spot", async () => {
  const plan = {
    tp: 2,
    sequenceParallel: true,
    precision: "bf16",
    recompute: "selective",
  } as const;
  const [behind, apart] = [true, false].map((overlapGradientProducts) =>
    smallRun({ ...plan, overlapGradientProducts }, llama),
  );
  const [a, b] = [await train(behind!, 2), await train(apart!, 2)];
  expect(a.losses).toEqual(b.losses);
  expect(a.first).toEqual(b.first);
});
