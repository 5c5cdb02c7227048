/**
 * The tensors of a pipeline stage, under the names and in the shapes of GPT-2 as Hugging Face
 * transformers stores it ([in, out] weights), so that its files can be read as such; and the part of
 * each that a tensor-parallel rank holds (Shoeybi et al., Megatron-LM, 2019): columns of the first
 * product of a pair, rows of the second, rows of the vocabulary.
 */
import { TriremeError } from "@trireme/core";
import {
  type LatentAttention,
  type Model,
  type Stage,
  layerFormAt,
  layerForms,
} from "@trireme/workload";
import { besideAdapters } from "./adapters.ts";
import { type ParameterSpec, tiedTable } from "./parameter.ts";
import type { Range, Slice } from "./slice.ts";

/** Standard deviation of fresh weights (Radford et al., GPT-2, 2019). */
const deviation = 0.02;

/** A rank's place among those that share out each layer. */
export interface Share {
  readonly rank: number;
  readonly ranks: number;
}

/** One rank that holds all. */
export const alone: Share = { rank: 0, ranks: 1 };

/** How a stage's tensors are shared out. */
export interface Shares {
  /** Each layer over tensor-parallel ranks. */
  readonly tensor: Share;
  /** Routed experts over expert-parallel ranks. */
  readonly expert: Share;
  /** Each routed expert over expert-tensor-parallel ranks. */
  readonly expertSplit: Share;
}

const whole: Shares = { tensor: alone, expert: alone, expertSplit: alone };

/** Every tensor that the stage computes with; a tied output head appears as the embedding table. */
export function stageParameters(
  model: Model,
  stage: Stage,
  shares: Shares = whole,
): ParameterSpec[] {
  const { tensor: share } = shares;
  const specs: ParameterSpec[] = [];
  const { hidden, vocab } = model;
  const rows = split(share, 0, [
    { start: vocabStart(vocab, share), count: vocabRows(vocab, share) },
  ]);
  const table = matrix(tiedTable, [vocab, hidden], rows);
  if (stage.embedding) {
    specs.push(table);
    if (model.position === "learned") specs.push(matrix("wpe.weight", [model.context, hidden]));
  }
  for (let i = 0; i < stage.layers; i++) specs.push(...layer(model, stage.firstLayer + i, shares));
  if (stage.head) {
    specs.push(...norm(model, "ln_f"));
    if (!model.tied) specs.push(matrix("lm_head.weight", [vocab, hidden], rows));
    else if (!stage.embedding) specs.push(table);
  }
  return model.adapter === undefined ? specs : besideAdapters(model, specs, share);
}

/** The first row of the vocabulary that a rank holds. */
export function vocabStart(vocab: number, { rank, ranks }: Share): number {
  return rank * Math.ceil(vocab / ranks);
}

/** Rows of the vocabulary on a rank: the last may hold fewer. */
export function vocabRows(vocab: number, share: Share): number {
  const rows = Math.min(Math.ceil(vocab / share.ranks), vocab - vocabStart(vocab, share));
  if (rows > 0) return rows;
  throw new TriremeError(
    "PLAN",
    `vocab ${vocab} leaves nothing for rank ${share.rank} of tp ${share.ranks}; use a smaller tp`,
  );
}

function layer(model: Model, index: number, shares: Shares): ParameterSpec[] {
  const { tensor } = shares;
  const prefix = `h.${index}`;
  const mixed = layerForms(model)[layerFormAt(model, index)]!.experts;
  return [
    ...norm(model, `${prefix}.ln_1`),
    ...(model.latent === undefined
      ? attention(model, `${prefix}.attn`, tensor)
      : latentAttention(model, model.latent, `${prefix}.attn`, tensor)),
    ...(hasSecondNorm(model) ? norm(model, `${prefix}.ln_2`) : []),
    ...(mixed
      ? experts(model, prefix, shares)
      : feedForward(model, `${prefix}.mlp`, model.ffn, tensor)),
  ];
}

function attention(model: Model, name: string, share: Share): ParameterSpec[] {
  const { hidden, heads, kvHeads, headDim, bias, qkvBias } = model;
  const [queries, keys] = [heads * headDim, kvHeads * headDim];
  const qkv = evenly(share, [queries, keys, keys]);
  return [
    ...splitColumns(`${name}.c_attn`, hidden, queries + 2 * keys, qkv, share, qkvBias),
    ...splitRows(`${name}.c_proj`, queries, hidden, share, bias, lastSpread(model)),
  ];
}

/** Under the names of DeepSeek's files: latents and their norms on every rank, heads shared out. */
function latentAttention(
  { hidden, heads, headDim, layers }: Model,
  { queryRank, keyValueRank, nopeDim, ropeDim, valueDim }: LatentAttention,
  name: string,
  share: Share,
): ParameterSpec[] {
  const up = (to: string, inputs: number, outputs: number): ParameterSpec[] =>
    splitColumns(`${name}.${to}`, inputs, outputs, evenly(share, [outputs]), share, false);
  const gain = (to: string, width: number): ParameterSpec =>
    constant(`${name}.${to}.weight`, width, 1);
  const queries = heads * headDim;
  return [
    ...(queryRank === 0
      ? up("q_proj", hidden, queries)
      : [
          matrix(`${name}.q_a_proj.weight`, [hidden, queryRank]),
          gain("q_a_layernorm", queryRank),
          ...up("q_b_proj", queryRank, queries),
        ]),
    matrix(`${name}.kv_a_proj_with_mqa.weight`, [hidden, keyValueRank + ropeDim]),
    gain("kv_a_layernorm", keyValueRank),
    ...up("kv_b_proj", keyValueRank, heads * (nopeDim + valueDim)),
    ...splitRows(`${name}.o_proj`, heads * valueDim, hidden, share, false, lastSpread({ layers })),
  ];
}

/** Whether the feed-forward block has a norm of its own. */
function hasSecondNorm({ block, sharedNorm }: Model): boolean {
  return block !== "parallel" || !sharedNorm;
}

/** Two residual branches a layer: their sum keeps the variance of one (GPT-2, section 2.3). */
function lastSpread({ layers }: Pick<Model, "layers">): number {
  return deviation / Math.sqrt(2 * layers);
}

function feedForward(model: Model, name: string, ffn: number, share: Share): ParameterSpec[] {
  const { hidden, bias, activation } = model;
  const inner = evenly(share, activation === "swiglu" ? [ffn, ffn] : [ffn]);
  return [
    ...splitColumns(`${name}.c_fc`, hidden, inner.total, inner, share, bias),
    ...splitRows(`${name}.c_proj`, ffn, hidden, share, bias, lastSpread(model)),
  ];
}

/** An expert: of the bias of its second product each rank that shares it out adds some columns. */
function expertBlock(model: Model, name: string, ffn: number, share: Share): ParameterSpec[] {
  const columns = split(share, 0, [biasColumns(model.hidden, share)]);
  return feedForward(model, name, ffn, share).map((spec) =>
    spec.name === `${name}.c_proj.bias` ? { ...spec, slice: columns } : spec,
  );
}

/** The columns of an expert's result to which a rank adds the bias. */
export function biasColumns(hidden: number, { rank, ranks }: Share): Range {
  const start = Math.floor((rank * hidden) / ranks);
  return { start, count: Math.floor(((rank + 1) * hidden) / ranks) - start };
}

/** Router, this rank's experts, and the expert that sees every token. */
function experts(model: Model, prefix: string, shares: Shares): ParameterSpec[] {
  const { tensor, expert, expertSplit } = shares;
  const { count, ffn, sharedFfn, selectionBias } = model.experts!;
  const local = count / expert.ranks;
  const own = Array.from(
    { length: local },
    (_, i) => `${prefix}.mlp.experts.${expert.rank * local + i}`,
  );
  const state = (name: string): ParameterSpec => ({
    ...constant(`${prefix}.mlp.router.${name}`, count, 0),
    role: "state",
  });
  return [
    matrix(`${prefix}.mlp.router.weight`, [model.hidden, count]),
    state("load"),
    ...(selectionBias ? [state("selection_bias")] : []),
    ...own.flatMap((name) =>
      expertBlock(model, name, ffn, expertSplit).map((spec) => ({
        ...spec,
        role: "expert" as const,
      })),
    ),
    ...(sharedFfn > 0 ? feedForward(model, `${prefix}.mlp.shared`, sharedFfn, tensor) : []),
  ];
}

/** Parts that lie side by side, each cut evenly. */
interface Columns {
  readonly total: number;
  readonly ranges: Slice["ranges"];
}

function evenly({ rank, ranks }: Share, widths: readonly number[]): Columns {
  let total = 0;
  const ranges = widths.map((width) => {
    const count = width / ranks;
    total += width;
    return { start: total - width + rank * count, count };
  });
  return { total, ranges };
}

function split(share: Share, dim: number, ranges: Slice["ranges"]): Slice | undefined {
  return share.ranks === 1 ? undefined : { dim, ranges };
}

/** A product whose output columns, and their biases, are shared out. */
function splitColumns(
  name: string,
  inputs: number,
  outputs: number,
  { ranges }: Columns,
  share: Share,
  biased: boolean,
): ParameterSpec[] {
  const weight = matrix(`${name}.weight`, [inputs, outputs], split(share, 1, ranges));
  if (!biased) return [weight];
  return [weight, constant(`${name}.bias`, outputs, 0, split(share, 0, ranges))];
}

/** A product whose input rows are shared out; its bias is added once, to the sum. */
function splitRows(
  name: string,
  inputs: number,
  outputs: number,
  share: Share,
  biased: boolean,
  spread: number,
): ParameterSpec[] {
  const { ranges } = evenly(share, [inputs]);
  const weight = matrix(`${name}.weight`, [inputs, outputs], split(share, 0, ranges), spread);
  return biased ? [weight, constant(`${name}.bias`, outputs, 0)] : [weight];
}

function norm(model: Model, name: string): ParameterSpec[] {
  const gain = constant(`${name}.weight`, model.hidden, 1);
  return model.norm === "rmsnorm" ? [gain] : [gain, constant(`${name}.bias`, model.hidden, 0)];
}

function matrix(
  name: string,
  dims: readonly number[],
  slice?: Slice,
  spread = deviation,
): ParameterSpec {
  return { name, dims, slice, initial: { deviation: spread }, decays: true };
}

function constant(name: string, size: number, value: number, slice?: Slice): ParameterSpec {
  return { name, dims: [size], slice, initial: { constant: value }, decays: false };
}
