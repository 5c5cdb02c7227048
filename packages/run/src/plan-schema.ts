/** The schema of a run file's plan section. */
import { pipelineSchedules } from "@trireme/workload";
import { z } from "zod";
import type { PlanSection } from "./description.ts";

const count = (description: string): z.ZodNumber => z.int().min(1).describe(description);

/** Degrees, batch and options. */
export const planSection: z.ZodType<PlanSection> = z.strictObject({
  tp: count("tensor parallel ranks; default 1").optional(),
  pp: count("pipeline parallel ranks; default 1").optional(),
  dp: count("data parallel replicas; default devices / (tp · cp · pp)").optional(),
  cp: count("context parallel ranks: a sample's tokens split over them; default 1").optional(),
  contextExchange: z
    .enum(["ring", "all-gather", "all-to-all"])
    .optional()
    .describe(
      "keys and values go round behind attention, are gathered before it, or heads are split instead of tokens (Ulysses); default ring",
    ),
  ep: count("expert parallel ranks, folded into tp · cp · dp; default 1").optional(),
  etp: count("ranks that split each expert's matrices; default tp").optional(),
  dispatch: z
    .enum(["all-to-all", "unique", "all-gather"])
    .optional()
    .describe(
      "how tokens reach their experts: once for each, once for each rank, or all to all; default all-to-all",
    ),
  dispatchPrecision: z
    .enum(["fp32", "bf16", "fp8"])
    .optional()
    .describe("in what rows travel to experts and back; default precision"),
  expertCapacity: z
    .number()
    .positive()
    .optional()
    .describe(
      "rows of an expert in multiples of an even share, the rest dropped; default: none is",
    ),
  vpp: count("model chunks of a pipeline rank; default 1").optional(),
  microbatch: count("samples of one microbatch; default 1").optional(),
  globalBatch: count("samples of one step, over all replicas"),
  sequence: count("tokens of one sample; default the model's context").optional(),
  document: count(
    "tokens of the document that a token of a packed sample is in, on average: attention stays within; default the sequence",
  ).optional(),
  schedule: z
    .enum(pipelineSchedules)
    .optional()
    .describe("pipeline schedule; default 1f1b, interleaved when vpp is above 1"),
  stageLayers: z
    .union([z.array(z.int().min(0)), z.literal("balanced")])
    .optional()
    .describe(
      "layers of each stage in model order, or balanced: as the FLOPs of layers and head say; default even",
    ),
  accountForEmbedding: z
    .boolean()
    .optional()
    .describe("the embedding counts as a layer where they are spread over stages; default false"),
  accountForLoss: z
    .boolean()
    .optional()
    .describe("the head and its loss count as a layer there; default false"),
  pipelines: z
    .array(
      z
        .array(
          z.strictObject({
            tp: count("ranks that share the stage's layers"),
            layers: count("layers of the stage"),
          }),
        )
        .describe("stages of one pipeline in model order"),
    )
    .optional()
    .describe("pipelines that differ, in place of tp, pp and dp; default: all are alike"),
  pipelineBatches: z
    .array(z.int().min(1))
    .optional()
    .describe("samples of each of these pipelines in one step; default an even share"),
  sequenceParallel: z
    .boolean()
    .optional()
    .describe("split norms and dropout over tp ranks along the sequence"),
  scatterGather: z
    .boolean()
    .optional()
    .describe("each tp rank sends its share of a boundary (SC'21, section 4.1)"),
  recompute: z
    .enum(["none", "selective", "operators", "rematerialise", "experts", "full"])
    .optional()
    .describe("what backward computes again instead of keeping"),
  recomputeLayers: z
    .int()
    .min(0)
    .optional()
    .describe("first layers of each stage that are recomputed; default all"),
  offload: z
    .enum(["none", "optimizer"])
    .optional()
    .describe("what waits in host memory and is updated there; default none"),
  order: z
    .array(z.enum(["tp", "cp", "dp", "pp"]))
    .length(4)
    .optional()
    .describe("mesh axes, the one whose ranks are neighbours first; default tp, cp, dp, pp"),
  precision: z.enum(["fp32", "bf16", "fp16"]).optional().describe("of weights and activations"),
  matrixPrecision: z
    .enum(["fp8", "int8", "fp4"])
    .optional()
    .describe("of the operands of the layers' matrix products; default precision"),
  attentionPrecision: z
    .enum(["fp8"])
    .optional()
    .describe("of the operands of attention's products, kept so for backward; default precision"),
  activationPrecision: z
    .enum(["fp8"])
    .optional()
    .describe("in what the activation's input is kept for backward; default precision"),
  gradientPrecision: z
    .enum(["fp32", "bf16", "fp16"])
    .optional()
    .describe("of gradient accumulation and reduction; default fp32"),
  gatheredCopies: z
    .boolean()
    .optional()
    .describe("what ZeRO 3 gathers is copied into each parameter, as FSDP2 does; default false"),
  momentPrecision: z
    .enum(["fp32", "bf16"])
    .optional()
    .describe("of the optimizer's moments; default fp32"),
  reductionPrecision: z
    .enum(["fp32", "bf16", "fp16"])
    .optional()
    .describe("of gradients between replicas; default gradientPrecision"),
  gradientExchange: z
    .enum(["reduce-scatter", "all-reduce"])
    .optional()
    .describe(
      "how ZeRO 1 and 2 sum gradients: each replica its share, or all; default reduce-scatter",
    ),
  zero: z
    .literal([0, 1, 2, 3])
    .optional()
    .describe("ZeRO stage: 1 shards the optimizer over dp, 2 also gradients, 3 also weights"),
  flashAttention: z.boolean().optional().describe("attention without its score matrix in memory"),
  flashVersion: z
    .literal([1, 2, 3])
    .optional()
    .describe("generation of the flash attention kernels; default the device's best"),
  vocabulary: z
    .enum(["two-barriers", "one-barrier", "interlaced"])
    .optional()
    .describe(
      "embedding and head split over pipeline ranks too, with so many exchanges between the last stage's forward and backward, or all ranks at once; default: on the first and last stage",
    ),
  vocabParallelLoss: z
    .boolean()
    .optional()
    .describe("each tp rank computes the loss over its part of the vocabulary; default true"),
  fusedSoftmax: z
    .boolean()
    .optional()
    .describe("plain attention's scaling, mask and softmax in one kernel; default true"),
  fusedNorm: z.boolean().optional().describe("RMSNorm in one kernel; default true"),
  fusedElementwise: z
    .boolean()
    .optional()
    .describe("activation, rotary embedding and loss in one kernel each; default true"),
  fusedLoss: z
    .boolean()
    .optional()
    .describe("cross entropy in one kernel; default fusedElementwise"),
  fusedRotary: z
    .boolean()
    .optional()
    .describe("rotary embedding in one kernel; default fusedElementwise"),
  groupedKernel: z
    .boolean()
    .optional()
    .describe(
      "the products of all experts of a rank in one kernel, not a call each; default false",
    ),
  cudaGraphs: z
    .enum(["none", "routing", "all"])
    .optional()
    .describe(
      "what is launched from recorded graphs: nothing, routers and permutations, or all; default none",
    ),
  dropout: z
    .number()
    .min(0)
    .lt(1)
    .describe("probability in attention scores and residual branches; default 0")
    .optional(),
  overlapDataParallel: z.boolean().optional().describe("reduce gradients behind backward"),
  overlapGradientProducts: z
    .boolean()
    .optional()
    .describe("tp collectives of backward beside the products that do not wait; default true"),
  overlapTensorParallel: z.boolean().optional().describe("split tp collectives behind products"),
  overlapPointToPoint: z.boolean().optional().describe("send between stages behind compute"),
  overlapExpertParallel: z
    .boolean()
    .optional()
    .describe("dispatch and combine behind the compute of another microbatch"),
});
