/** The schema of a run file: strict objects, each field with what it is, its unit and its default. */
import { TriremeError } from "@trireme/core";
import { z } from "zod";
import type {
  ClusterSection,
  DataSection,
  OptimizerSection,
  RouterSection,
  RunDescription,
} from "./description.ts";
import { modelSection } from "./model-schema.ts";
import { planSection } from "./plan-schema.ts";
import { quantity } from "./quantity.ts";

const count = (description: string): z.ZodNumber => z.int().min(1).describe(description);
const natural = (description: string): z.ZodNumber => z.int().min(0).describe(description);
const fraction = (description: string): z.ZodNumber =>
  z.number().min(0).lt(1).describe(description);
const coefficient = (what: string): z.ZodOptional<z.ZodNumber> =>
  z.number().min(0).optional().describe(`coefficient of the ${what}`);
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
    .enum(["adamw", "lamb"])
    .default("adamw")
    .describe(
      "adamw: decoupled weight decay (Loshchilov, Hutter 2019); lamb: each tensor moves by a share of its norm (You et al. 2020)",
    ),
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

const routerSection: z.ZodType<RouterSection> = z.strictObject({
  scoring: z
    .enum(["softmax-after", "softmax-before", "sigmoid"])
    .optional()
    .describe("how logits become weights: softmax over the chosen experts, over all, or sigmoid"),
  balanceLoss: coefficient("balance loss (Switch, eq. 4); default 0.01, or 0 with selectionBias"),
  zLoss: coefficient("z-loss (ST-MoE, eq. 5); default 0"),
  scale: z.number().positive().optional().describe("factor on all weights; default 1"),
  groups: z
    .strictObject({
      groups: count("groups of equal size that the experts lie in"),
      keep: count("groups kept for each token"),
      best: count("best experts of a group that speak for it").optional(),
    })
    .optional()
    .describe("limits each token to the experts of a few groups (DeepSeek-V3, section 2.1.2)"),
  biasRate: z
    .number()
    .min(0)
    .optional()
    .describe("what a selection bias moves by after a step; default 0.001"),
  dropPolicy: z
    .enum(["position", "probability"])
    .optional()
    .describe("whose tokens a full expert keeps: the first, the default, or the largest weights"),
  capacityGroups: count("groups of experts that share a capacity; default each its own").optional(),
  capacityParts: z
    .strictObject({
      microbatch: count("samples").optional(),
      cp: count("context-parallel ranks").optional(),
      tp: count("tensor-parallel ranks with sequence parallelism").optional(),
    })
    .optional()
    .describe("degrees by which tokens are dropped, to repeat another layout; default the plan's"),
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
      directory: z
        .string()
        .min(1)
        .optional()
        .describe("where, relative to the current directory; default in the run folder"),
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
  guard: z
    .strictObject({
      window: count("healthy steps whose median a value is compared with; default 64").optional(),
      settle: count("first steps in which only NaN and infinity count; default 16").optional(),
      factor: z
        .number()
        .gt(1)
        .optional()
        .describe("times the median that is a spike; default 5 (ByteRobust)"),
      patience: count("spikes in a row after which the run goes back; default 3").optional(),
      reattempts: natural("times the same batches are tried before they are skipped").optional(),
      back: natural("steps before the spike that are not trusted").optional(),
      margin: count("batches behind it that are skipped too").optional(),
      limit: natural("spikes in a row before the run is called diverged").optional(),
    })
    .optional()
    .describe("going back from spikes of the loss; needs checkpoints to go back to; default none"),
  router: routerSection
    .optional()
    .describe("how experts are chosen and kept busy; default by what experts the model has"),
  engine: z
    .strictObject({
      kind: z.literal("embedded").default("embedded").describe("worker threads of this process"),
      kernels: z
        .enum(["wasm", "fused", "native", "auto"])
        .default("wasm")
        .describe(
          "wasm: the same bits on every processor; fused: multiply and add in one; native: products of the system's OpenBLAS, through koffi; auto: the fastest there is",
        ),
      fp8Scaling: z
        .enum(["current", "delayed", "block"])
        .optional()
        .describe("scales of FP8 operands (plan.matrixPrecision fp8); default current"),
    })
    .prefault({})
    .describe("what carries the run out, and by which arithmetic"),
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
