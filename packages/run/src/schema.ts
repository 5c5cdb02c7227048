/** The schema of a run file: strict objects, each field with what it is, its unit and its default. */
import { TriremeError } from "@trireme/core";
import { pipelineSchedules } from "@trireme/workload";
import { z } from "zod";
import type {
  ClusterSection,
  DataSection,
  OptimizerSection,
  PlanSection,
  RunDescription,
} from "./description.ts";
import { modelSection } from "./model-schema.ts";
import { quantity } from "./quantity.ts";

const count = (description: string): z.ZodNumber => z.int().min(1).describe(description);
const fraction = (description: string): z.ZodNumber =>
  z.number().min(0).lt(1).describe(description);
const seed = (description: string): z.ZodNumber => z.int().describe(description);

const link = {
  bandwidth: quantity("bandwidth", "one direction, of one device"),
  latency: quantity("time", "of the smallest message"),
};

const clusterSection: z.ZodType<ClusterSection> = z.strictObject({
  name: z.string().min(1).optional().describe("what the cluster is called in output"),
  host: z
    .union([
      z.string().meta({ examples: ["dgx-a100-80", "dgx-h100", "local"] }),
      z.strictObject({
        name: z.string().min(1).optional().describe("what the host is called in output"),
        accelerator: z
          .string()
          .describe("name in the catalogue")
          .meta({ examples: ["a100-80"] }),
        accelerators: count("devices of the host"),
        link: z
          .strictObject({
            kind: z.enum(["nvlink", "xgmi", "pcie"]).describe("what it is"),
            ...link,
          })
          .describe("between two devices of the host"),
        network: z.strictObject(link).describe("one device's share of the host's network"),
      }),
    ])
    .optional()
    .describe("a host of the catalogue, `local` for this machine, or a host of your own"),
  cpu: z
    .strictObject({
      cores: count("cores that compute"),
      peak: quantity("arithmetic", "fp32 rate of one core"),
      memory: quantity("size", "memory of the host"),
      memoryBandwidth: quantity("bandwidth", "memory bandwidth of the host"),
    })
    .optional()
    .describe("a CPU host whose devices are threads, in place of `host`"),
  hosts: count("how many hosts").optional(),
  devices: count("devices in all, in place of `hosts`").optional(),
});

const planSection: z.ZodType<PlanSection> = z.strictObject({
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
  schedule: z
    .enum(pipelineSchedules)
    .optional()
    .describe("pipeline schedule; default 1f1b, interleaved when vpp is above 1"),
  stageLayers: z
    .array(z.int().min(0))
    .optional()
    .describe("layers of each stage in model order; default even"),
  sequenceParallel: z
    .boolean()
    .optional()
    .describe("split norms and dropout over tp ranks along the sequence"),
  scatterGather: z
    .boolean()
    .optional()
    .describe("each tp rank sends its share of a boundary (SC'21, section 4.1)"),
  recompute: z
    .enum(["none", "selective", "operators", "rematerialise", "full"])
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
    .enum(["fp8", "fp4"])
    .optional()
    .describe("of the operands of the layers' matrix products; default precision"),
  gradientPrecision: z
    .enum(["fp32", "bf16", "fp16"])
    .optional()
    .describe("of gradient accumulation and reduction; default fp32"),
  zero: z
    .literal([0, 1, 2, 3])
    .optional()
    .describe("ZeRO stage: 1 shards the optimizer over dp, 2 also gradients, 3 also weights"),
  flashAttention: z.boolean().optional().describe("attention without its score matrix in memory"),
  flashVersion: z
    .literal([1, 2, 3])
    .optional()
    .describe("generation of the flash attention kernels; default the device's best"),
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
  dropout: fraction("probability in attention scores and residual branches; default 0").optional(),
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

const dataSection: z.ZodType<DataSection> = z.strictObject({
  path: z
    .string()
    .min(1)
    .describe("a text file, or a directory of .txt files; relative to the run file"),
  tokenizer: z.enum(["character", "byte"]).default("byte").describe("what a token is"),
  validation: fraction("share of the documents kept for validation").default(0.1),
  seed: seed("order of samples and choice of validation documents; default `seed`").optional(),
});

const optimizerSection: z.ZodType<OptimizerSection> = z.strictObject({
  kind: z
    .literal("adamw")
    .default("adamw")
    .describe("decoupled weight decay (Loshchilov, Hutter 2019)"),
  learningRate: z.number().positive().default(3e-4).describe("peak learning rate"),
  minimumLearningRate: z
    .number()
    .min(0)
    .optional()
    .describe("where the schedule ends; default a tenth of learningRate"),
  warmup: z.int().min(0).default(0).describe("steps of linear warm-up"),
  schedule: z
    .enum(["constant", "cosine", "linear", "inverse-sqrt", "wsd"])
    .default("cosine")
    .describe("learning rate after warm-up; wsd is warm-up, stable, decay"),
  decay: count("last steps in which wsd decays; default a fifth of the steps").optional(),
  decayShape: z
    .enum(["linear", "cosine", "sqrt"])
    .default("linear")
    .describe("how wsd decays; sqrt is one minus the root of the share that is over"),
  beta1: fraction("decay of the first moment").default(0.9),
  beta2: fraction("decay of the second moment").default(0.95),
  epsilon: z.number().positive().default(1e-8).describe("added to the root of the second moment"),
  weightDecay: z.number().min(0).default(0.1).describe("on matrices, not on biases and norms"),
  clip: z.number().min(0).default(1).describe("largest norm of the gradient; 0 clips nothing"),
});

const runSection: z.ZodType<RunDescription> = z.strictObject({
  name: z.string().min(1).optional().describe("what the run is called; default the model's name"),
  model: z
    .union([z.string(), modelSection])
    .describe("the architecture: a preset's name or its fields"),
  cluster: z
    .union([z.string(), clusterSection])
    .optional()
    .describe("what it runs on; default this machine, one device a rank"),
  plan: z
    .union([z.literal("auto"), planSection])
    .describe("how it is split; `auto` asks the planner"),
  data: dataSection.optional().describe("what it is trained on"),
  optimizer: optimizerSection.prefault({}).describe("how weights move"),
  steps: count("optimizer steps; needed when there are data, else 1").optional(),
  seed: seed("of everything random in the run").default(0),
  checkpoint: z
    .strictObject({
      every: count("steps between saves; default only at the end").optional(),
      interval: quantity(
        "time",
        "training time between saves, instead of or beside every",
      ).optional(),
      keep: count("newest saves that stay").default(2),
      directory: z.string().min(1).optional().describe("where; default in the run folder"),
    })
    .prefault({})
    .describe("saving the state"),
  evaluate: z
    .strictObject({
      every: count("steps between evaluations; default only at the end").optional(),
      batches: count("global batches of one evaluation").default(4),
    })
    .prefault({})
    .describe("measuring the validation loss"),
  engine: z
    .strictObject({
      kind: z.literal("embedded").default("embedded").describe("worker threads of this process"),
    })
    .prefault({})
    .describe("what carries the run out"),
  sample: z
    .strictObject({
      prompt: z.string().min(1).describe("text to continue"),
      tokens: count("tokens to add").default(200),
      temperature: z.number().min(0).default(0.8).describe("0 takes the likeliest token"),
      seed: seed("default `seed`").optional(),
    })
    .optional()
    .describe("text generated when training ends"),
});

/** The schema of a run description as written in a file. */
export function runSchema(): z.ZodType<RunDescription> {
  return runSection;
}

/** A JSON Schema node, as far as this package reads it. */
export interface JsonSchema {
  readonly type?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly anyOf?: readonly JsonSchema[];
  readonly [key: string]: unknown;
}

let exported: JsonSchema | undefined;

function isSchema(value: object): value is JsonSchema {
  return "type" in value || "anyOf" in value;
}

/**
 * The schema as JSON Schema (2020-12) with descriptions and examples, for editors: name it in the
 * first line of a run file, `# yaml-language-server: $schema=run.schema.json`.
 */
export function jsonSchema(): JsonSchema {
  if (exported !== undefined) return exported;
  const schema = z.toJSONSchema(runSection, { io: "input" });
  if (!isSchema(schema)) throw new TriremeError("RUN", "the run schema is not an object");
  exported = schema;
  return schema;
}
