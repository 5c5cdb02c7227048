/** Models from their shapes: what is left out has a default. */
import { nearestDivisor } from "@trireme/core";
import type {
  Adapter,
  DeltaNet,
  Encoder,
  Experts,
  LatentAttention,
  Mamba,
  Model,
  Window,
} from "./model.ts";
import { checkModel, fail } from "./model-rules.ts";
import { checkPattern } from "./pattern-rules.ts";

/** Some fields that must be given, the rest at will. */
type Given<T, K extends keyof T> = Pick<T, K> & { readonly [P in keyof T]?: T[P] | undefined };

/** What `defineModel` needs, and what it may be told beside that. */
export type ModelOptions = Pick<Model, "layers" | "hidden" | "heads" | "vocab"> &
  Partial<
    Omit<Model, "window" | "latent" | "experts" | "mamba" | "deltaNet" | "adapter" | "encoders">
  > & {
    readonly window?: Given<Window, "size">;
    readonly latent?: Given<LatentAttention, "keyValueRank" | "nopeDim" | "ropeDim" | "valueDim">;
    readonly experts?: Given<Experts, "count" | "active">;
    readonly mamba?: Given<Mamba, "heads" | "headDim" | "stateDim">;
    readonly deltaNet?: Given<DeltaNet, "keyHeads" | "valueHeads" | "keyDim" | "valueDim">;
    readonly adapter?: Given<Adapter, "rank">;
    readonly encoders?: readonly EncoderOptions[];
  };

/** What an encoder needs; the rest has the form of ViT. */
export type EncoderOptions = Given<Encoder, "layers" | "hidden" | "heads" | "patch" | "tokens">;

/**
 * A model from its shape; what is left out has GPT form: kvHeads = heads, headDim = hidden / heads,
 * ffn = 4 hidden, context 2048, learned positions, LayerNorm before each block, GeLU, biases, tied
 * embeddings, causal. Experts are as wide as `ffn`, in every layer; Mamba-2 has one group, chunks of 256 tokens and
 * a convolution of 4 with a bias, a delta net chunks of 64 and no bias; an adapter changes queries and values.
 * Throws TriremeError "MODEL" for counts that are not positive integers, heads that do not divide, and
 * forms that exclude each other.
 */
export function defineModel(o: ModelOptions): Model {
  const { latent } = o;
  if (o.headDim === undefined && latent === undefined && o.hidden % o.heads !== 0) {
    fail(
      `hidden ${o.hidden} is not a multiple of heads ${o.heads}; use heads ${nearestDivisor(o.hidden, o.heads)}, or state headDim`,
    );
  }
  const bias = o.bias ?? true;
  const norm = o.norm ?? "layernorm";
  const block = o.block ?? "sequential";
  const ffn = o.ffn ?? 4 * o.hidden;
  const m: Model = {
    name: o.name ?? "custom",
    layers: o.layers,
    hidden: o.hidden,
    heads: o.heads,
    kvHeads: o.kvHeads ?? o.heads,
    headDim: latent === undefined ? (o.headDim ?? o.hidden / o.heads) : latentHead(latent, o),
    ffn,
    vocab: o.vocab,
    context: o.context ?? 2048,
    position: o.position ?? "learned",
    extraPositions: o.extraPositions ?? 0,
    rotaryBase: o.rotaryBase ?? 10_000,
    rotaryFraction: o.rotaryFraction ?? 1,
    norm,
    normEpsilon: o.normEpsilon ?? 1e-5,
    normBias: o.normBias ?? norm === "layernorm",
    normWeights: o.normWeights ?? true,
    normPlacement: o.normPlacement ?? "pre",
    block,
    sharedNorm: o.sharedNorm ?? block === "parallel",
    finalNorm: o.finalNorm ?? true,
    embeddingNorm: o.embeddingNorm ?? false,
    qkNorm: o.qkNorm ?? "none",
    activation: o.activation ?? "gelu",
    activationClamp: o.activationClamp ?? 0,
    bias,
    qkvBias: o.qkvBias ?? bias,
    outputBias: o.outputBias ?? bias,
    headBias: o.headBias ?? false,
    attentionSinks: o.attentionSinks ?? false,
    attentionGate: o.attentionGate ?? false,
    tied: o.tied ?? true,
    causal: o.causal ?? true,
    segments: o.segments ?? 0,
    pooler: o.pooler ?? false,
    prediction: o.prediction ?? 0,
    encoders: (o.encoders ?? []).map((e) => encoder(e)),
    source: o.source ?? "defined by its shape",
    ...(o.window === undefined ? {} : { window: over({ size: 0, every: 0 }, o.window) }),
    ...(latent === undefined ? {} : { latent: over({ ...latent, queryRank: 0 }, latent) }),
    ...(o.experts === undefined ? {} : { experts: experts(o.experts, ffn) }),
    ...(o.pattern === undefined ? {} : { pattern: o.pattern }),
    ...(o.mamba === undefined ? {} : { mamba: mamba(o.mamba) }),
    ...(o.deltaNet === undefined
      ? {}
      : { deltaNet: over({ ...o.deltaNet, convolution: 4, chunk: 64 }, o.deltaNet) }),
    ...(o.adapter === undefined ? {} : { adapter: adapter(o.adapter) }),
  };
  checkModel(m);
  checkPattern(m);
  return m;
}

function latentHead(latent: { nopeDim: number; ropeDim: number }, o: ModelOptions): number {
  const width = latent.nopeDim + latent.ropeDim;
  if (o.headDim !== undefined && o.headDim !== width) {
    fail(`headDim ${o.headDim} is not latent nopeDim + ropeDim = ${width}; leave it out`);
  }
  return width;
}

/** The defaults with what is given over them. */
function over<T extends object>(defaults: T, o: { readonly [P in keyof T]?: T[P] | undefined }): T {
  const given = Object.entries(o).filter(([, value]) => value !== undefined);
  return { ...defaults, ...Object.fromEntries(given) };
}

function experts(o: Given<Experts, "count" | "active">, ffn: number): Experts {
  const defaults = {
    count: o.count,
    active: o.active,
    ffn,
    sharedFfn: 0,
    sharedGate: false,
    denseLayers: 0,
    every: 1,
    routerBias: false,
    selectionBias: false,
  };
  return over(defaults, o);
}

function mamba(o: Given<Mamba, "heads" | "headDim" | "stateDim">): Mamba {
  const { heads, headDim, stateDim } = o;
  const defaults = {
    heads,
    headDim,
    stateDim,
    groups: 1,
    convolution: 4,
    convolutionBias: true,
    chunk: 256,
  };
  return over(defaults, o);
}

function adapter(o: Given<Adapter, "rank">): Adapter {
  const defaults: Adapter = { rank: o.rank, targets: ["query", "value"], base: "full", dropout: 0 };
  return over(defaults, o);
}

function encoder(o: EncoderOptions): Encoder {
  const span = o.span ?? o.tokens;
  const defaults: Encoder = {
    modality: "image",
    layers: o.layers,
    hidden: o.hidden,
    heads: o.heads,
    ffn: 4 * o.hidden,
    activation: "gelu",
    norm: "layernorm",
    bias: true,
    patch: o.patch,
    tokens: o.tokens,
    span,
    positionRows: span,
    embeddingNorm: false,
    merge: 1,
    projector: [],
    frozen: false,
  };
  return over(defaults, o);
}
