/** Every rule of a model and of a plan, broken once: the message has the numbers, the rule and what is legal. */
import { expect, test } from "vitest";
import { TriremeError } from "@trireme/core";
import {
  type ModelOptions,
  type PlanOptions,
  defineModel,
  definePlan,
  expertAxes,
  model,
} from "@trireme/workload";

/** What reaches the library from a file: nothing has checked its types. */
const parsedPlan = (value: object): PlanOptions => JSON.parse(JSON.stringify(value));
const parsedModel = (value: object): ModelOptions => JSON.parse(JSON.stringify(value));

const llama = model("llama3-8b");
const mixtral = model("mixtral-8x7b");
const deepseek = model("deepseek-v3");
const llava = model("llava-1.5-7b");

test.each<readonly [string, typeof llama, object]>([
  ["tp 0 must be a whole number, 1 or more", llama, { tp: 0 }],
  ["microbatch 1.5 must be a whole number", llama, { microbatch: 1.5 }],
  ['schedule "zbh1" is not one of', llama, { schedule: "zbh1" }],
  [
    'recompute "ful" is not one of none, selective, operators, rematerialise, experts, full; did you mean "full"?',
    llama,
    { recompute: "ful" },
  ],
  [
    "recompute experts: llama3-8b has no experts; use recompute selective or full",
    llama,
    { recompute: "experts" },
  ],
  ['contextExchange "rings" is not one of', llama, { contextExchange: "rings" }],
  ['dispatch "all" is not one of', llama, { dispatch: "all" }],
  ['offload "disk" is not one of none, optimizer', llama, { offload: "disk" }],
  ['cudaGraphs "some" is not one of none, routing, all', llama, { cudaGraphs: "some" }],
  [
    'precision "bf61" is not one of fp32, bf16, fp16; did you mean "bf16"?',
    llama,
    { precision: "bf61" },
  ],
  ['gradientPrecision "fp8" is not one of', llama, { gradientPrecision: "fp8" }],
  ['matrixPrecision "int4" is not one of fp8, int8, fp4', llama, { matrixPrecision: "int4" }],
  ['reductionPrecision "fp8" is not one of fp32', llama, { reductionPrecision: "fp8" }],
  ['gradientExchange "ring" is not one of', llama, { gradientExchange: "ring" }],
  [
    'gradientExchange "all-reduce" with zero 3',
    llama,
    { dp: 2, zero: 3, gradientExchange: "all-reduce" },
  ],
  [
    'vocabulary "ends" is not one of two-barriers',
    llama,
    parsedPlan({ pp: 2, vocabulary: "ends" }),
  ],
  [
    "vocabulary one-barrier splits over pipeline ranks, and pp is 1",
    llama,
    { vocabulary: "one-barrier" },
  ],
  [
    "vocabulary interlaced goes with schedule 1f1b, not v-half; use 1f1b",
    llama,
    { pp: 2, vpp: 2, schedule: "v-half", vocabulary: "interlaced" },
  ],
  [
    "vocabulary two-barriers goes with schedule 1f1b or v-half, not gpipe",
    llama,
    { pp: 2, schedule: "gpipe", vocabulary: "two-barriers" },
  ],
  [
    "vocabulary one-barrier computes the loss over parts of the vocabulary",
    llama,
    { pp: 2, vocabulary: "one-barrier", vocabParallelLoss: false },
  ],
  [
    "vocabulary one-barrier leaves the ends no more than other stages; leave accountForLoss out",
    llama,
    { pp: 3, vpp: 1, accountForLoss: true, vocabulary: "one-barrier" },
  ],
  [
    "vocabulary one-barrier has no passes for the prediction modules",
    { ...llama, prediction: 1 },
    { pp: 2, vocabulary: "one-barrier" },
  ],
  ["flashVersion 4 is not 1, 2 or 3", llama, { flashVersion: 4 }],
  [
    "document 0 must be a whole number from 1 to the 8192 tokens of a sample",
    llama,
    { document: 0 },
  ],
  ["document 4097 must be a whole number", llama, { sequence: 4096, document: 4097 }],
  [
    "document 512 is of flash attention; use flashAttention true",
    llama,
    { document: 512, flashAttention: false },
  ],
  ['attentionPrecision "fp4" is not one of fp8', llama, { attentionPrecision: "fp4" }],
  [
    "attentionPrecision fp8 is of flash attention; use flashAttention true",
    llama,
    { attentionPrecision: "fp8", flashAttention: false },
  ],
  ['activationPrecision "bf16" is not one of fp8', llama, { activationPrecision: "bf16" }],
  ["zero 4 is not a ZeRO stage: 0, 1, 2 or 3", llama, { zero: 4 }],
  ["recomputeLayers -1 must be a whole number, 0 or more", llama, { recomputeLayers: -1 }],
  ['dispatchPrecision "fp4" is not one of fp32, bf16, fp8', mixtral, { dispatchPrecision: "fp4" }],
  ["expertCapacity 0 must be above 0", mixtral, { expertCapacity: 0 }],
  [
    "order tp-cp-dp-tp must name tp, cp, dp and pp once each",
    llama,
    { order: ["tp", "cp", "dp", "tp"] },
  ],
  ["dropout 1 must be in [0, 1)", llama, { dropout: 1 }],
  ["heads 32 is not a multiple of tp 5; the nearest legal tp is 4", llama, { tp: 5 }],
  ["kvHeads 8 is not a multiple of tp 16; the nearest legal tp is 8", llama, { tp: 16 }],
  [
    "ffn 11008 is not a multiple of tp 3",
    { ...model("llama2-7b"), heads: 33, kvHeads: 33 },
    { tp: 3 },
  ],
  [
    "encoders[0].heads 16 is not a multiple of tp 32; the nearest legal tp is 16",
    llava,
    { tp: 32 },
  ],
  [
    "contextExchange all-to-all splits heads: kvHeads 8 / tp 2 = 4 is not a multiple of cp 8; the nearest legal cp is 4",
    llama,
    { tp: 2, cp: 8, contextExchange: "all-to-all" },
  ],
  [
    "sequence 1001 is not a multiple of tp 8; the nearest is 1000",
    llama,
    { tp: 8, sequence: 1001, sequenceParallel: true },
  ],
  [
    "context parallel: sequence 1002 is not a multiple of 2 cp 4 = 8; the nearest is 1000",
    llama,
    { cp: 4, sequence: 1002 },
  ],
  [
    "context parallel: sequence 1002 is not a multiple of cp 4 = 4",
    llama,
    { cp: 4, sequence: 1002, contextExchange: "all-to-all" },
  ],
  ["ep 2: llama3-8b has no experts; use ep 1", llama, { ep: 2 }],
  ["etp 2: llama3-8b has no experts; use etp 1", llama, { etp: 2 }],
  [
    "dispatchPrecision fp8: llama3-8b has no experts; leave it out",
    llama,
    { dispatchPrecision: "fp8" },
  ],
  ["expertCapacity 1: llama3-8b has no experts; leave it out", llama, { expertCapacity: 1 }],
  [
    "experts 8 are not a multiple of ep 3; the nearest legal ep is 2",
    mixtral,
    { ep: 3, dp: 3, globalBatch: 3 },
  ],
  ["experts.ffn 14336 is not a multiple of etp 3; the nearest legal etp is 2", mixtral, { etp: 3 }],
  [
    "experts.sharedFfn 2048 is not a multiple of tp 3",
    { ...deepseek, heads: 129, kvHeads: 129, ffn: 18_432 },
    { tp: 3, etp: 1 },
  ],
  [
    "tp 1 × cp 1 × dp 2 = 2 is not a multiple of ep 4 × etp 1 = 4; the nearest legal ep is 2",
    mixtral,
    { ep: 4, dp: 2, globalBatch: 2 },
  ],
  [
    "experts with tp 2 need each token on one rank; set sequenceParallel, or use tp 1",
    mixtral,
    { tp: 2 },
  ],
  [
    "order tp-pp-cp-dp puts pp 2 between the axes that experts fold",
    mixtral,
    { pp: 2, order: ["tp", "pp", "cp", "dp"] },
  ],
  [
    "sequence 512 is shorter than the 576 tokens that encoders give; use 576 or more",
    llava,
    { sequence: 512 },
  ],
  [
    "globalBatch 7 is not a multiple of dp 2 × microbatch 2 = 4; the nearest is 8",
    llama,
    { dp: 2, microbatch: 2, globalBatch: 7 },
  ],
  [
    "sequence 4096 is longer than the 2048 learned positions of gpt3-175b; use 2048",
    model("gpt3-175b"),
    { sequence: 4096 },
  ],
  [
    "vpp 3, but schedule zb-v has two chunks a rank; use vpp 2",
    llama,
    { pp: 2, vpp: 3, schedule: "zb-v" },
  ],
  [
    "vpp 2 needs a schedule of several chunks, not gpipe",
    llama,
    { pp: 2, vpp: 2, schedule: "gpipe" },
  ],
  ["vpp 2 needs pp 2 or more, not 1; use vpp 1", llama, { vpp: 2 }],
  [
    "interleaved: 3 microbatches are fewer than pp 4; use 4 or more",
    llama,
    { pp: 4, vpp: 2, globalBatch: 3 },
  ],
  [
    "layers 32 are fewer than pp 33 × vpp 1 = 33 stages; the most is 32 stages, or set accountForEmbedding",
    llama,
    { pp: 33 },
  ],
  [
    "= 34 stages; the most is 32 stages, or set accountForEmbedding and accountForLoss",
    llama,
    { pp: 34 },
  ],
  [
    "layers and loss 33 are fewer than pp 34 × vpp 1 = 34 stages; the most is 33 stages, or set accountForEmbedding",
    llama,
    { pp: 34, accountForLoss: true },
  ],
  [
    "layers and embedding and loss 34 are fewer than pp 35 × vpp 1 = 35 stages; the most is 34 stages",
    llama,
    { pp: 35, accountForEmbedding: true, accountForLoss: true },
  ],
  [
    "accountForLoss spreads layers, and stageLayers says where they are; leave one out",
    llama,
    { pp: 2, stageLayers: [17, 15], accountForLoss: true },
  ],
  [
    "pipelines that differ exclude accountForEmbedding true; leave it out: each stage says its layers",
    llama,
    {
      pipelines: [
        [{ tp: 2, layers: 32 }],
        [
          { tp: 1, layers: 16 },
          { tp: 1, layers: 16 },
        ],
      ],
      accountForEmbedding: true,
    },
  ],
  [
    "stageLayers has 1 entries, but pp 2 × vpp 1 = 2 stages; give 2",
    llama,
    { pp: 2, stageLayers: [32] },
  ],
  ["stageLayers 16+15 = 31, but llama3-8b has 32 layers", llama, { pp: 2, stageLayers: [16, 15] }],
  [
    "stageLayers 33+-1 = 32, but llama3-8b has 32 layers; they must be whole numbers",
    llama,
    { pp: 2, stageLayers: [33, -1] },
  ],
])("plan: %s", (message, m, o) => {
  const options = parsedPlan({ globalBatch: 2, ...o });
  expect(() => definePlan(m, options)).toThrow(message);
  expect(() => definePlan(m, options)).toThrow(expect.objectContaining({ code: "PLAN" }));
});

test("experts cannot be folded around stages", () => {
  const p = definePlan(llama, { pp: 2, globalBatch: 2, order: ["tp", "pp", "cp", "dp"] });
  expect(() => expertAxes(p)).toThrow("order tp-pp-cp-dp puts pp 2 between");
  expect(expertAxes({ ...p, pp: 1 }).map((a) => a.name)).toEqual(["etp", "ep", "edp", "pp"]);
});

const shape = { layers: 4, hidden: 64, heads: 4, vocab: 100 };
const latent = { keyValueRank: 16, nopeDim: 8, ropeDim: 4, valueDim: 8 };
const encoder = { layers: 2, hidden: 32, heads: 4, patch: 12, tokens: 16 };
const experts = { count: 4, active: 2 };

test.each<readonly [string, object]>([
  ["hidden 64 is not a multiple of heads 7; use heads 8, or state headDim", { heads: 7 }],
  ["vocab 0 must be a whole number, 1 or more", { vocab: 0 }],
  ["segments -1 must be a whole number, 0 or more", { segments: -1 }],
  ["heads 4 is not a multiple of kvHeads 3; use kvHeads 2", { kvHeads: 3 }],
  [
    'position "rotery" is not one of learned, rotary, alibi, none; did you mean "rotary"?',
    { position: "rotery" },
  ],
  ['norm "batchnorm" is not one of', { norm: "batchnorm" }],
  ['normPlacement "between" is not one of', { normPlacement: "between" }],
  [
    'block "paralel" is not one of sequential, parallel; did you mean "parallel"?',
    { block: "paralel" },
  ],
  ['qkNorm "heads" is not one of', { qkNorm: "heads" }],
  ['activation "silu" is not one of', { activation: "silu" }],
  ["activationClamp -1 must be 0, for no bound, or above", { activationClamp: -1 }],
  [
    "activationClamp 7 bounds gate and up, which gelu has not; use swiglu or geglu",
    { activationClamp: 7 },
  ],
  ["tied 1 must be true or false", { tied: 1 }],
  ["normEpsilon 0 must be above 0", { normEpsilon: 0 }],
  ["rotaryBase -1 must be above 0", { rotaryBase: -1 }],
  ["rotaryFraction 2 must be in (0, 1]", { rotaryFraction: 2 }],
  [
    "sharedNorm needs block parallel with norms before it, not block sequential with pre",
    { sharedNorm: true },
  ],
  ["window.size 0 must be a whole number, 1 or more", { window: { size: 0 } }],
  [
    "window.size 8 looks back from a token; use causal true, or no window",
    { window: { size: 8 }, causal: false },
  ],
  ["segments 2 belong to encoders of text; use causal false, or segments 0", { segments: 2 }],
  [
    "headDim 16 is not latent nopeDim + ropeDim = 12; leave it out",
    { latent, headDim: 16, position: "rotary" },
  ],
  [
    "latent attention makes keys for all 4 heads; leave kvHeads 2 out",
    { latent, kvHeads: 2, position: "rotary" },
  ],
  [
    "latent attention has norms of its own; leave qkNorm out",
    { latent, qkNorm: "head", position: "rotary" },
  ],
  ["latent attention rotates ropeDim; use position rotary, not learned", { latent }],
  [
    "latent.valueDim 0 must be a whole number, 1 or more",
    { latent: { ...latent, valueDim: 0 }, position: "rotary" },
  ],
  [
    "experts.active 5 are more than experts.count 4; the most is 4",
    { experts: { count: 4, active: 5 } },
  ],
  [
    "experts.denseLayers 4 and every 1 leave no layer of 4 with experts",
    { experts: { ...experts, denseLayers: 4 } },
  ],
  [
    "experts.denseLayers 3 and every 3 leave no layer of 4 with experts",
    { experts: { ...experts, denseLayers: 3, every: 3 } },
  ],
  [
    "experts.sharedGate needs a shared expert; state sharedFfn",
    { experts: { ...experts, sharedGate: true } },
  ],
  ["adapter.rank 0 must be a whole number, 1 or more", { adapter: { rank: 0 } }],
  [
    'adapter.base "int4" is not one of full, fp8, int8, nf4',
    { adapter: { rank: 4, base: "int4" } },
  ],
  ["adapter.targets is empty", { adapter: { rank: 4, targets: [] } }],
  [
    "adapter.targets query, query names one twice",
    { adapter: { rank: 4, targets: ["query", "query"] } },
  ],
  ['adapter.targets: "q" is not one of', { adapter: { rank: 4, targets: ["q"] } }],
  ["adapter.targets: gelu has no gate; use up", { adapter: { rank: 4, targets: ["gate"] } }],
  [
    "adapters of experts' matrices (up) are not covered; use attention's",
    { adapter: { rank: 4, targets: ["up"] }, experts },
  ],
  [
    "this latent attention has no value matrix; use query, key-value-down, key-value-up, up, down or output",
    { adapter: { rank: 4, targets: ["value"] }, latent, position: "rotary" },
  ],
  [
    "adapter.targets: query-down belongs to latent attention; use query, key, value, qkv, output, up, down",
    { adapter: { rank: 4, targets: ["query-down"] } },
  ],
  [
    "adapter.targets: qkv has key in it; name one of them",
    { adapter: { rank: 4, targets: ["qkv", "key"] } },
  ],
  ["adapter.targets: gelu has no gate; use up", { adapter: { rank: 4, targets: ["gate-up"] } }],
  ["adapter.dropout 1 must be at least 0 and below 1", { adapter: { rank: 4, dropout: 1 } }],
  [
    "adapter: fine-tuning leaves the 1 prediction modules out; use prediction 0",
    { adapter: { rank: 4 }, prediction: 1 },
  ],
  ["encoders[0].layers 0 must be a whole number", { encoders: [{ ...encoder, layers: 0 }] }],
  [
    'encoders[0].modality "smell" is not one of image, video, audio',
    { encoders: [{ ...encoder, modality: "smell" }] },
  ],
  [
    'encoders[0].activation "silu" is not one of',
    { encoders: [{ ...encoder, activation: "silu" }] },
  ],
  ['encoders[0].norm "none" is not one of', { encoders: [{ ...encoder, norm: "none" }] }],
  [
    "encoders[0]: hidden 32 is not a multiple of heads 5; use heads 4",
    { encoders: [{ ...encoder, heads: 5 }] },
  ],
  [
    "encoders[0].projector 0 must be a whole number",
    { encoders: [{ ...encoder, projector: [0] }] },
  ],
  [
    "encoders[0]: tokens 16 are not a multiple of span 5; the nearest is 15",
    { encoders: [{ ...encoder, span: 5 }] },
  ],
  [
    "encoders[0]: tokens 16 are not a multiple of merge 3; the nearest is 15",
    { encoders: [{ ...encoder, merge: 3 }] },
  ],
])("model: %s", (message, o) => {
  const options = parsedModel({ ...shape, ...o });
  expect(() => defineModel(options)).toThrow(message);
  expect(() => defineModel(options)).toThrow(TriremeError);
  expect(() => defineModel(options)).toThrow(expect.objectContaining({ code: "MODEL" }));
});
