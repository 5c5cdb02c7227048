/** The schema of a run file's model section. */
import { adapterTargets } from "@trireme/workload";
import { z } from "zod";
import type { ModelSection } from "./description.ts";

const count = (description: string): z.ZodNumber => z.int().min(1).describe(description);
const natural = (description: string): z.ZodNumber => z.int().min(0).describe(description);
const flag = (description: string): z.ZodBoolean => z.boolean().describe(description);

const activation = z.enum(["gelu", "relu", "squared-relu", "swiglu", "geglu"]);
const norm = z.enum(["layernorm", "rmsnorm"]);

const window = z
  .strictObject({
    size: count("tokens that a query sees, itself included"),
    every: natural("every so many layers one attends to all; default 0, none").optional(),
  })
  .describe("sliding-window attention");

const latent = z
  .strictObject({
    queryRank: natural("width of the queries' latent; default 0, none").optional(),
    keyValueRank: count("width of the keys' and values' latent"),
    nopeDim: count("part of a head without position"),
    ropeDim: count("rotated part of a head"),
    valueDim: count("width of a head's values"),
  })
  .describe("multi-head latent attention");

const experts = z
  .strictObject({
    count: count("routed experts"),
    active: count("experts that a token is sent to"),
    ffn: count("width inside one; default the model's ffn").optional(),
    sharedFfn: natural("width of the expert that sees every token; default 0, none").optional(),
    sharedGate: flag("a gate scales the shared expert's output; default false").optional(),
    denseLayers: natural("first layers that are dense; default 0").optional(),
    every: count("every so many layers one has experts; default 1").optional(),
    routerBias: flag("the router has a trained bias; default false").optional(),
    selectionBias: flag("a bias for each expert balances the choice; default false").optional(),
  })
  .describe("a mixture of experts in place of the feed-forward block");

const mamba = z
  .strictObject({
    heads: count("heads of a state-space layer"),
    headDim: count("channels of a head"),
    stateDim: count("numbers that a channel remembers"),
    groups: count("groups of heads that share B and C; default 1").optional(),
    convolution: count("tokens that the convolution sees; default 4").optional(),
    convolutionBias: flag("the convolution has a bias; default true").optional(),
    chunk: count("tokens that the scan multiplies at once; default 256").optional(),
  })
  .describe("layers M of the pattern: Mamba-2");

const deltaNet = z
  .strictObject({
    keyHeads: count("heads of queries and of keys"),
    valueHeads: count("heads of values"),
    keyDim: count("width of a head's queries and keys"),
    valueDim: count("width of a head's values"),
    convolution: count("tokens that the convolution sees; default 4").optional(),
    chunk: count("tokens that the rule is applied to at once; default 64").optional(),
  })
  .describe("layers G of the pattern: linear attention by a gated delta rule");

const adapter = z
  .strictObject({
    rank: count("inner width of the two matrices"),
    targets: z
      .array(z.enum(adapterTargets))
      .optional()
      .describe(
        "matrices that are adapted, qkv and gate-up side by side as one; default query and value",
      ),
    base: z
      .enum(["full", "fp8", "int8", "nf4"])
      .optional()
      .describe("how frozen matrices are kept; default full"),
    dropout: z
      .number()
      .min(0)
      .lt(1)
      .optional()
      .describe("probability of dropping an element of an adapter's input; default 0"),
  })
  .describe("low-rank adapters, all else frozen (LoRA, QLoRA)");

const encoder = z
  .strictObject({
    modality: z.enum(["image", "video", "audio"]).optional().describe("default image"),
    layers: count("encoder layers"),
    hidden: count("width of its residual stream"),
    heads: count("attention heads"),
    ffn: count("inner width; default 4 · hidden").optional(),
    activation: activation.optional().describe("default gelu"),
    norm: norm.optional().describe("default layernorm"),
    bias: flag("linear layers have a bias; default true").optional(),
    patch: count("numbers in one patch or frame: 3 · 14² for patches of 14 pixels"),
    tokens: count("tokens of one sample that it encodes"),
    span: count("tokens that attend to each other; default all of a sample").optional(),
    positionRows: natural("rows of learned positions; default span, 0 for rotary").optional(),
    embeddingNorm: flag("a norm before its first layer; default false").optional(),
    merge: count("encoded tokens that make one of the decoder's; default 1").optional(),
    projector: z
      .array(z.int().min(1))
      .optional()
      .describe("inner widths of the projector; default one matrix"),
    frozen: flag("computed and not trained; default false").optional(),
  })
  .describe("an encoder in front of the first layer");

/** A preset with changes, or a shape of one's own. */
export const modelSection: z.ZodType<ModelSection> = z.strictObject({
  preset: z
    .string()
    .optional()
    .describe("a public model to start from")
    .meta({
      examples: ["gpt2", "gpt3-175b", "llama3-8b", "deepseek-v3"],
    }),
  name: z.string().min(1).optional().describe("what the model is called in output"),
  layers: count("decoder layers").optional(),
  hidden: count("width of the residual stream").optional(),
  heads: count("attention heads").optional(),
  kvHeads: count("key and value heads; fewer than heads is grouped-query attention").optional(),
  headDim: count("width of one head; default hidden / heads").optional(),
  ffn: count("inner width of the feed-forward block; default 4 · hidden").optional(),
  vocab: count("vocabulary; default the tokenizer's").optional(),
  context: count("longest sequence in tokens").optional(),
  position: z
    .enum(["learned", "rotary", "alibi", "none"])
    .optional()
    .describe("position embedding"),
  extraPositions: natural("rows of learned positions beyond context; default 0").optional(),
  rotaryBase: z
    .number()
    .positive()
    .optional()
    .describe("base of the rotary angles; default 10,000"),
  rotaryFraction: z
    .number()
    .positive()
    .max(1)
    .optional()
    .describe("share of a head that is rotated; default 1"),
  norm: norm.optional().describe("normalisation"),
  normEpsilon: z.number().positive().optional().describe("added to the variance; default 1e-5"),
  normBias: flag("norms add a shift; default with layernorm").optional(),
  normWeights: flag("norms multiply by weights; default true").optional(),
  normPlacement: z
    .enum(["pre", "post", "both"])
    .optional()
    .describe("norms before each block, behind it, or both; default pre"),
  block: z
    .enum(["sequential", "parallel"])
    .optional()
    .describe("attention before the feed-forward block, or beside it; default sequential"),
  sharedNorm: flag("a parallel block's branches read one normalised input").optional(),
  finalNorm: flag("a norm before the head; default true").optional(),
  embeddingNorm: flag("a norm behind the embedding; default false").optional(),
  qkNorm: z
    .enum(["none", "head", "all"])
    .optional()
    .describe("norm of queries and keys, per head or over all heads; default none"),
  activation: activation.optional().describe("feed-forward activation"),
  activationClamp: z
    .number()
    .min(0)
    .optional()
    .describe("what gate and up are cut to; default 0, no bound"),
  bias: flag("linear layers have a bias").optional(),
  qkvBias: flag("the query, key and value projections have one; default bias").optional(),
  outputBias: flag("attention's output projection has one; default bias").optional(),
  headBias: flag("the output head has one; default false").optional(),
  attentionSinks: flag("a learned logit per head joins the softmax; default false").optional(),
  attentionGate: flag("a gate beside the queries scales attention; default false").optional(),
  tied: flag("the output projection is the token embedding").optional(),
  causal: flag("tokens attend to earlier ones only; default true").optional(),
  segments: natural("rows of a table of segments; default 0").optional(),
  pooler: flag("a square layer over the first token's state; default false").optional(),
  window: window.optional(),
  latent: latent.optional(),
  experts: experts.optional(),
  pattern: z
    .string()
    .min(1)
    .optional()
    .describe(
      "what each layer is: M Mamba-2, G a gated delta net, * attention, W attention within the window, - a dense block, E experts; " +
        "a letter is a layer, or with spaces a mixer, a block or both; repeated; default attention and a block in each",
    )
    .meta({ examples: ["MEM*E", "GE GE GE *E"] }),
  mamba: mamba.optional(),
  deltaNet: deltaNet.optional(),
  prediction: natural("multi-token prediction modules; default 0").optional(),
  adapter: adapter.optional(),
  encoders: z.array(encoder).optional().describe("encoders of images and sounds; default none"),
});
