/** In every format, each field of a model and a plan that is not its default is written or listed. */
import { type ResolvedRun, defineRun, wholeRouter } from "@trireme/run";
import {
  type Imported,
  type Unsupported,
  formatToml,
  formatYaml,
  fromDeepSpeed,
  fromMegatron,
  fromMegatronBridge,
  fromNanotron,
  fromNemo,
  fromTorchtitan,
  parseToml,
  parseYaml,
  toDeepSpeed,
  toMegatron,
  toMegatronBridge,
  toNanotron,
  toNemo,
  toTorchtitan,
} from "@trireme/run/formats";
import type { Model, Plan } from "@trireme/workload";
import { describe, expect, it } from "vitest";

const cluster = { host: "dgx-h100", hosts: 1 };
const dense = { preset: "gpt2", vocab: 50_304 };
const llama = "llama3-8b";
const moe = "mixtral-8x7b";
const globalBatch = 32;

type Case = readonly [model: unknown, plan: object];

/** A run in which the field is not its default, for each. */
const plans: Readonly<Record<keyof Plan, Case>> = {
  tp: [llama, { tp: 2 }],
  pp: [llama, { pp: 2 }],
  dp: [llama, { dp: 8 }],
  cp: [llama, { cp: 2 }],
  contextExchange: [llama, { cp: 2, contextExchange: "all-to-all" }],
  ep: [moe, { ep: 2 }],
  etp: [moe, { tp: 2, etp: 1, sequenceParallel: true }],
  dispatch: [moe, { ep: 2, dispatch: "unique" }],
  dispatchPrecision: [moe, { ep: 2, dispatchPrecision: "fp8" }],
  expertCapacity: [moe, { expertCapacity: 1.25 }],
  vpp: [llama, { pp: 2, vpp: 4 }],
  microbatch: [llama, { microbatch: 2 }],
  globalBatch: [llama, { globalBatch: 64 }],
  sequence: [llama, { sequence: 4096 }],
  document: [llama, { document: 512 }],
  schedule: [llama, { pp: 2, schedule: "zb-h1" }],
  stageLayers: [llama, { pp: 4, stageLayers: [2, 10, 10, 10] }],
  accountForEmbedding: [llama, { pp: 4, accountForEmbedding: true }],
  accountForLoss: [llama, { pp: 4, accountForLoss: true }],
  pipelines: [
    llama,
    {
      pipelines: [
        [{ tp: 4, layers: 32 }],
        [
          { tp: 2, layers: 16 },
          { tp: 2, layers: 16 },
        ],
      ],
    },
  ],
  pipelineBatches: [
    llama,
    { pipelines: [[{ tp: 4, layers: 32 }], [{ tp: 4, layers: 32 }]], pipelineBatches: [20, 12] },
  ],
  sequenceParallel: [llama, { tp: 2, sequenceParallel: true }],
  scatterGather: [llama, { tp: 2, pp: 2, scatterGather: true }],
  recompute: [llama, { recompute: "rematerialise" }],
  recomputeLayers: [llama, { recompute: "full", recomputeLayers: 3 }],
  offload: [llama, { offload: "optimizer", zero: 1 }],
  order: [llama, { pp: 2, order: ["tp", "cp", "pp", "dp"] }],
  precision: [llama, { precision: "fp16" }],
  matrixPrecision: [llama, { matrixPrecision: "fp8" }],
  attentionPrecision: [llama, { attentionPrecision: "fp8" }],
  activationPrecision: [llama, { activationPrecision: "fp8" }],
  gradientPrecision: [llama, { gradientPrecision: "bf16" }],
  gatheredCopies: [llama, { zero: 3, gatheredCopies: true }],
  momentPrecision: [llama, { momentPrecision: "bf16" }],
  reductionPrecision: [llama, { gradientPrecision: "bf16", reductionPrecision: "fp32" }],
  gradientExchange: [llama, { zero: 1, gradientExchange: "all-reduce" }],
  zero: [llama, { zero: 3 }],
  flashAttention: [llama, { flashAttention: false }],
  flashVersion: [llama, { flashVersion: 2 }],
  vocabulary: [llama, { pp: 2, vocabulary: "one-barrier" }],
  vocabParallelLoss: [llama, { vocabParallelLoss: false }],
  fusedSoftmax: [llama, { fusedSoftmax: false }],
  fusedNorm: [llama, { fusedNorm: false }],
  fusedElementwise: [llama, { fusedElementwise: false }],
  fusedLoss: [llama, { fusedLoss: false }],
  fusedRotary: [llama, { fusedRotary: false }],
  groupedKernel: ["llama4-scout", { groupedKernel: true }],
  cudaGraphs: [moe, { cudaGraphs: "routing" }],
  dropout: [llama, { dropout: 0.1 }],
  overlapDataParallel: [llama, { overlapDataParallel: true }],
  overlapGradientProducts: [llama, { overlapGradientProducts: false }],
  overlapTensorParallel: [llama, { tp: 2, overlapTensorParallel: true }],
  overlapPointToPoint: [llama, { pp: 2, overlapPointToPoint: true }],
  overlapExpertParallel: [moe, { ep: 2, overlapExpertParallel: true }],
};

const values: readonly (readonly [keyof Plan, Case])[] = [
  ...Object.entries(plans).map(([field, c]): [keyof Plan, Case] => [field as keyof Plan, c]),
  ["contextExchange", [llama, { cp: 2, contextExchange: "all-gather" }]],
  ["dispatch", [moe, { ep: 2, dispatch: "all-gather" }]],
  ["recompute", [llama, { recompute: "full" }]],
  ["recompute", [llama, { recompute: "selective" }]],
  ["recompute", [moe, { recompute: "experts" }]],
  ["recompute", [llama, { recompute: "operators" }]],
  ["recomputeLayers", [llama, { recompute: "selective", recomputeLayers: 3 }]],
  ["schedule", [llama, { pp: 2, schedule: "gpipe" }]],
  ["schedule", [llama, { pp: 2, vpp: 2, schedule: "dfs-bfs" }]],
  ["cudaGraphs", [llama, { cudaGraphs: "all" }]],
  ["matrixPrecision", [llama, { matrixPrecision: "fp8", precision: "fp32" }]],
  ["matrixPrecision", [llama, { matrixPrecision: "int8" }]],
  ["gradientPrecision", [llama, { precision: "fp16", gradientPrecision: "bf16" }]],
  ["gradientPrecision", [llama, { precision: "fp32", gradientPrecision: "fp16" }]],
  ["zero", [llama, { zero: 1 }]],
  ["zero", [llama, { zero: 2 }]],
  ["offload", [llama, { offload: "optimizer" }]],
  ["order", [llama, { dp: 8, order: ["dp", "tp", "cp", "pp"] }]],
  ["overlapPointToPoint", [llama, { pp: 2, vpp: 2, overlapPointToPoint: true }]],
];

const heads = { heads: 12, hidden: 768 };
const latent = { keyValueRank: 64, queryRank: 32, nopeDim: 32, ropeDim: 16, valueDim: 32 };
const experts = { count: 8, active: 2 };
const models: Readonly<Record<Exclude<keyof Model, "source" | "name">, object>> = {
  layers: { ...dense, layers: 6 },
  hidden: { ...dense, hidden: 1536, heads: 12 },
  heads: { ...dense, heads: 6 },
  kvHeads: { ...dense, kvHeads: 4 },
  headDim: { ...dense, headDim: 32 },
  ffn: { ...dense, ffn: 1000 },
  vocab: { ...dense, vocab: 1000 },
  context: { ...dense, context: 512 },
  position: { ...dense, position: "alibi" },
  extraPositions: { ...dense, extraPositions: 2 },
  rotaryBase: { ...dense, position: "rotary", rotaryBase: 5000 },
  rotaryFraction: { ...dense, position: "rotary", rotaryFraction: 0.5 },
  norm: { ...dense, norm: "rmsnorm" },
  normEpsilon: { ...dense, normEpsilon: 1e-6 },
  normBias: { ...dense, normBias: false },
  normWeights: { ...dense, normWeights: false },
  normPlacement: { ...dense, normPlacement: "both" },
  block: { ...dense, block: "parallel" },
  sharedNorm: { ...dense, block: "parallel", sharedNorm: false },
  finalNorm: { ...dense, finalNorm: false },
  embeddingNorm: { ...dense, embeddingNorm: true },
  qkNorm: { ...dense, qkNorm: "all" },
  activation: { ...dense, activation: "geglu" },
  activationClamp: { ...dense, activation: "swiglu", activationClamp: 7 },
  bias: { ...dense, bias: false },
  qkvBias: { ...dense, qkvBias: false },
  outputBias: { ...dense, outputBias: false },
  headBias: { ...dense, headBias: true },
  attentionSinks: { ...dense, attentionSinks: true },
  attentionGate: { ...dense, attentionGate: true },
  tied: { ...dense, tied: false },
  causal: { ...dense, causal: false },
  segments: { ...dense, causal: false, segments: 2 },
  pooler: { ...dense, pooler: true },
  window: { ...dense, window: { size: 64 } },
  latent: { ...dense, ...heads, position: "rotary", latent },
  experts: { ...dense, experts },
  pattern: { ...dense, pattern: "*-" },
  mamba: { ...dense, pattern: "M*-", mamba: { heads: 8, headDim: 64, stateDim: 16 } },
  deltaNet: {
    ...dense,
    pattern: "G- *-",
    deltaNet: { keyHeads: 4, valueHeads: 8, keyDim: 32, valueDim: 32 },
  },
  prediction: { ...dense, prediction: 1 },
  adapter: { ...dense, adapter: { rank: 8 } },
  encoders: { ...dense, encoders: [{ layers: 2, hidden: 64, heads: 2, patch: 12, tokens: 16 }] },
};
const shapes: readonly (readonly [keyof Model, object])[] = [
  ...Object.entries(models).map(([field, m]): [keyof Model, object] => [field as keyof Model, m]),
  ["position", { ...dense, position: "none" }],
  ["activation", { ...dense, activation: "squared-relu" }],
  ["activation", { ...dense, activation: "relu" }],
  ["activation", { ...dense, activation: "swiglu" }],
  ["qkNorm", { ...dense, qkNorm: "head" }],
  ["qkvBias", { ...dense, bias: false, qkvBias: true }],
  ["window", { ...dense, window: { size: 64, every: 6 } }],
  ["latent", { ...dense, position: "rotary", latent: { ...latent, queryRank: 0 } }],
  [
    "experts",
    {
      ...dense,
      experts: {
        ...experts,
        ffn: 100,
        sharedFfn: 64,
        sharedGate: true,
        denseLayers: 2,
        selectionBias: true,
      },
    },
  ],
  ["experts", { ...dense, experts: { ...experts, every: 3, denseLayers: 3 } }],
  ["experts", { ...dense, experts: { ...experts, routerBias: true } }],
  ["experts", { ...dense, experts: { ...experts, every: 2 } }],
];

/** Experts of a capacity whose choice is biased. */
const routed = {
  model: { ...dense, experts: { count: 8, active: 2, selectionBias: true } },
  cluster,
  plan: { globalBatch, expertCapacity: 2 },
};

/** What may be stated of routers, none of it the default. */
const routers: readonly (readonly [string, unknown])[] = [
  ["scoring", "softmax-before"],
  ["scoring", "softmax-after"],
  ["balanceLoss", 0.02],
  ["zLoss", 1e-3],
  ["scale", 2.5],
  ["groups", { groups: 4, keep: 2 }],
  ["groups", { groups: 4, keep: 2, best: 2 }],
  ["biasRate", 1e-4],
  ["dropPolicy", "probability"],
  ["capacityGroups", 4],
  ["capacityParts", { microbatch: 1 }],
];

interface Format {
  readonly name: string;
  readonly write: (run: ResolvedRun) => { readonly unsupported: readonly Unsupported[] };
  readonly read: (written: never) => Imported | Promise<Imported>;
  /** The model is said whole, by its name or in a script. */
  readonly whole?: boolean;
}

const yaml = async (config: Readonly<Record<string, unknown>>): Promise<unknown> =>
  parseYaml(await formatYaml(config));
const tree = (
  name: string,
  write: (run: ResolvedRun) => {
    readonly config: Readonly<Record<string, unknown>>;
    readonly unsupported: readonly Unsupported[];
  },
  read: (config: unknown) => Imported,
  whole = false,
): Format => ({
  name,
  write,
  whole,
  read: async ({ config }: { config: Readonly<Record<string, unknown>> }) =>
    read(name === "torchtitan" ? await parseToml(await formatToml(config)) : await yaml(config)),
});

const formats: readonly Format[] = [
  {
    name: "Megatron-LM",
    write: toMegatron,
    read: ({ args }: { args: readonly string[] }) => fromMegatron(args),
  },
  tree("Megatron-Bridge", toMegatronBridge, fromMegatronBridge),
  tree("NeMo", toNemo, fromNemo),
  tree("nanotron", toNanotron, fromNanotron),
  tree("torchtitan", toTorchtitan, (config) => fromTorchtitan(config, { devices: 8 }), true),
  tree("DeepSpeed", toDeepSpeed, (config) => fromDeepSpeed(config, { dp: 8 }), true),
];

describe.each(formats)("$name", ({ write, read, whole }) => {
  const check = async (
    run: ResolvedRun,
    section: "model" | "plan",
    field: string,
  ): Promise<void> => {
    const written = write(run);
    const listed = written.unsupported.map((u) => u.option);
    const path = `${section}.${field}`;
    const saysSo = (option: string): boolean =>
      option === path ||
      option.startsWith(`${path}.`) ||
      (whole === true && section === "model" && option === "model");
    if (listed.some(saysSo)) return;
    const { description, unsupported } = await read(written as never);
    // What has no flavor was listed on the way out.
    const lost = unsupported.filter((u) => whole !== true || u.option !== "model.flavor");
    expect(lost).toEqual([]);
    const { model, ...rest } = description;
    const again = defineRun({ ...rest, model: model ?? run.model.name, cluster });
    expect({ [field]: Reflect.get(again[section], field) }).toEqual({
      [field]: Reflect.get(run[section], field),
    });
  };

  it.each(values)("plan.%s is written or listed: %j", async (field, [model, plan]) => {
    const run = defineRun({ model, cluster, plan: { globalBatch, ...plan }, steps: 100 });
    await check(run, "plan", field);
  });

  it.each(shapes)("model.%s is written or listed: %j", async (field, model) => {
    const run = defineRun({ model, cluster, plan: { globalBatch }, steps: 100 });
    await check(run, "model", field);
  });

  it.each(routers)("router.%s is written or listed: %j", async (field, stated) => {
    const run = defineRun({ ...routed, router: { [field]: stated } });
    const written = write(run);
    const said = written.unsupported.map((u) => u.option);
    if (
      said.some((option) => option === `router.${field}` || option.startsWith(`router.${field}.`))
    )
      return;
    const { description } = await read(written as never);
    const again = defineRun({ ...routed, router: description["router"] });
    const router = wholeRouter(run.model.experts!, again.router);
    expect(Reflect.get(router, field)).toEqual(stated);
  });

  it("what is not stated of routers is told to it, or nothing is said of them", async () => {
    const run = defineRun({ ...routed, model: moe });
    const { description } = await read(write(run) as never);
    if (description["router"] === undefined) return;
    const again = defineRun({ ...routed, model: moe, router: description["router"] });
    const { experts: choices } = run.model;
    expect(wholeRouter(choices!, again.router)).toEqual(wholeRouter(choices!));
  });

  it("an optimizer that it has not is listed", () => {
    const kindOf = (kind: string): readonly Unsupported[] => {
      const run = defineRun({ model: llama, cluster, plan: { globalBatch }, optimizer: { kind } });
      return write(run).unsupported.filter(({ option }) => option === "optimizer.kind");
    };
    expect(kindOf("adamw")).toEqual([]);
    expect(kindOf("lamb")).toMatchObject([{ value: "lamb" }]);
  });
});
