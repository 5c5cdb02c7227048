import { test } from "vitest";
import {
  adaptedForms,
  attentionTargets,
  expectAdapted,
  expectFrozenInBf16,
} from "../adapted-run.ts";
import { deepSeek, latentForm, mixtral } from "../equality.ts";
import type { Degrees } from "../small-run.ts";

const [, gpt, ofGpt] = adaptedForms[0]!;
const [, llama, ofLlama] = adaptedForms[1]!;

test.each<Degrees>([
  { dp: 2, zero: 1 },
  { dp: 2, zero: 3 },
  { pp: 2, microbatch: 2 },
  { pp: 2, dp: 2, microbatch: 2, schedule: "zb-h1" },
  { cp: 2 },
  { recompute: "full" },
  { tp: 2 },
  { tp: 2, sequenceParallel: true, zero: 3, dp: 2 },
])("adapters under %o train as on one rank", (plan) => expectAdapted(llama, ofLlama, plan));

test.each<Degrees>([
  { tp: 2, sequenceParallel: true },
  { tp: 2, dp: 2, zero: 3 },
])("adapters of matrices side by side under %o train as on one rank", (plan) =>
  expectAdapted(llama, ["qkv", "output", "gate-up", "down"], plan),
);

test.each<Degrees>([{ pp: 2 }, { pp: 2, tp: 2, microbatch: 2, schedule: "dualpipe" }])(
  "adapters of a model with a tied table under %o train as on one rank",
  (plan) => expectAdapted(gpt, ofGpt, plan),
);

test.each<Degrees>([
  { dp: 2, ep: 2 },
  { dp: 2, ep: 2, zero: 3 },
  { tp: 2, pp: 2, sequenceParallel: true },
])("adapters of a mixture of experts under %o train as on one rank", async (plan) => {
  await expectAdapted(mixtral, attentionTargets, plan);
  await expectAdapted(deepSeek, attentionTargets, plan);
});

test.each<Degrees>([
  { tp: 2, sequenceParallel: true },
  { dp: 2, zero: 3 },
])("adapters of latent attention under %o train as on one rank", (plan) =>
  expectAdapted(latentForm, ["output"], plan),
);

test.each([
  ["one rank", gpt, ofGpt, {}, { dp: 2, zero: 3 }],
  ["a tied table over a pipeline", gpt, ofGpt, { pp: 2 }, { tp: 2 }],
  ["ZeRO 3 and tensor parallelism", llama, ofLlama, { dp: 2, zero: 3, tp: 2 }, { pp: 2 }],
  ["a mixture of experts", mixtral, attentionTargets, { dp: 2, ep: 2, zero: 3 }, {}],
  ["latent attention", latentForm, ["output"], { tp: 2, sequenceParallel: true }, {}],
] as const)("frozen matrices in BF16: %s", (_, form, targets, plan, elsewhere) =>
  expectFrozenInBf16(form, targets, plan, elsewhere),
);
