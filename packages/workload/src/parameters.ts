/**
 * Parameter counts to the digit. A layer is its norms, the attention projections and the feed-forward
 * block; for GPT form the sum is SC'21's 12Lh²(1 + 13/12h + (V+s)/12Lh) plus the final norm.
 */
import { adapterParameters } from "./adapter.ts";
import { encoderParameters } from "./encoder.ts";
import { type LayerForm, blocksOf, countForms, layerFormAt, layerForms } from "./layer-form.ts";
import { type Model, isGated } from "./model.ts";
import { type Scan, isScan, scanWidths } from "./scan-widths.ts";

/** Parameters of a model by place; `total = embedding + layers + prediction + final + head + encoders + adapters`. */
export interface ParameterCounts {
  readonly total: number;
  /** What a token meets: all but the experts that it is not sent to. */
  readonly active: number;
  /** What training changes: all, or under an adapter the adapters alone, and no frozen encoder. */
  readonly trainable: number;
  /** Token embedding, tables of learned positions and segments, the norm after them. */
  readonly embedding: number;
  /** All transformer layers. */
  readonly layers: number;
  /** Multi-token prediction modules, without the embedding and head that they share. */
  readonly prediction: number;
  /** The norm before the head, and a pooler. */
  readonly final: number;
  /** The output head; when it is the token embedding, its bias alone. */
  readonly head: number;
  /** Encoders and their projectors. */
  readonly encoders: number;
  readonly adapters: number;
}

const known = new WeakMap<Model, ParameterCounts>();

/** Parameters of `m`. */
export function parameters(m: Model): ParameterCounts {
  let counts = known.get(m);
  if (counts === undefined) {
    counts = count(m);
    known.set(m, counts);
  }
  return counts;
}

function count(m: Model): ParameterCounts {
  const forms = layerForms(m);
  const counts = countForms(m, 0, m.layers);
  let layers = 0;
  let idle = 0;
  for (const [i, form] of forms.entries()) {
    const { sharded, replicated, experts } = layerParameters(m, form);
    layers += counts[i]! * (sharded + replicated + experts);
    idle += counts[i]! * idleExperts(m, experts);
  }
  const last = layerParameters(m, forms[layerFormAt(m, m.layers)]!);
  const prediction =
    m.prediction * (last.sharded + last.replicated + last.experts + predictionParameters(m));
  idle += m.prediction * idleExperts(m, last.experts);
  const embedding = m.vocab * m.hidden + tableParameters(m);
  const final = finalParameters(m);
  const head = (m.tied ? 0 : m.vocab * m.hidden) + (m.headBias ? m.vocab : 0);
  const encoders = m.encoders.reduce((sum, e) => sum + encoderParameters(m, e).total, 0);
  const frozen = m.encoders.reduce((n, e) => n + (e.frozen ? encoderParameters(m, e).trunk : 0), 0);
  const adapters = m.layers * adapterParameters(m).total;
  const total = embedding + layers + prediction + final + head + encoders + adapters;
  return {
    total,
    active: total - idle,
    trainable: m.adapter === undefined ? total - frozen : adapters,
    embedding,
    layers,
    prediction,
    final,
    head,
    encoders,
    adapters,
  };
}

/** Of a layer's routed experts' parameters, those that a token does not meet. */
function idleExperts(m: Model, experts: number): number {
  return m.experts === undefined
    ? 0
    : (experts / m.experts.count) * (m.experts.count - m.experts.active);
}

/** Parameters of the tables beside the token embedding, on every rank: positions, segments, and the norm after them. */
export function tableParameters(m: Model): number {
  const positions = m.position === "learned" ? m.context + m.extraPositions : 0;
  return (positions + m.segments) * m.hidden + (m.embeddingNorm ? normParameters(m) : 0);
}

/** Parameters between the last layer and the head, on every rank: a norm, and a pooler. */
export function finalParameters(m: Model): number {
  const pooler = m.pooler ? m.hidden * (m.hidden + 1) : 0;
  return (m.finalNorm ? normParameters(m) : 0) + pooler;
}

/**
 * What a prediction module has beside its layer: three norms, and the projection of state and embedding (arXiv
 * 2412.19437, Eq. 21).
 */
export function predictionParameters(m: Model): number {
  return 2 * m.hidden * m.hidden + 3 * normParameters(m);
}

/** Parameters of one norm: a scale, and for LayerNorm a shift. */
export function normParameters(m: Model): number {
  return (m.normWeights ? m.hidden : 0) + (m.normBias ? m.hidden : 0);
}

/** Norms of the residual stream in one layer. */
function layerNorms(m: Model, form: LayerForm): number {
  return m.sharedNorm ? 1 : (m.normPlacement === "both" ? 2 : 1) * blocksOf(form);
}

/** Output features of the fused query, key and value projection, and of a gate beside it; without latent attention. */
export function qkvWidth(m: Model): number {
  return ((m.attentionGate ? 2 : 1) * m.heads + 2 * m.kvHeads) * m.headDim;
}

/** Width of all heads' values side by side: what the output projection reads. */
export function contextWidth(m: Model): number {
  return m.heads * (m.latent?.valueDim ?? m.headDim);
}

/**
 * Output features of the first feed-forward projection of width `ffn`: gate and up side by side for gated activations.
 */
export function fc1Width(m: Pick<Model, "activation">, ffn: number): number {
  return isGated(m.activation) ? 2 * ffn : ffn;
}

/** One layer's parameters, by what parallelism does with them. */
export interface LayerParameters {
  /** Split over tensor-parallel ranks: weights, and the biases of column-parallel projections. */
  readonly sharded: number;
  /** On every tensor-parallel rank: norms, routers, latent projections, biases of row-parallel projections. */
  readonly replicated: number;
  /** All routed experts: split over expert-parallel ranks, and each over expert-tensor-parallel ones. */
  readonly experts: number;
}

/** Parameters of a layer of one form, adapters left out. */
export function layerParameters(m: Model, form: LayerForm): LayerParameters {
  const mixer = mixerParameters(m, form);
  const norms = layerNorms(m, form) * normParameters(m);
  const feedForward = form.experts ? mixture(m) : form.dense ? dense(m, m.ffn) : nothing;
  return {
    sharded: mixer.sharded + feedForward.sharded,
    replicated: mixer.replicated + norms + feedForward.replicated,
    experts: feedForward.experts,
  };
}

const nothing: LayerParameters = { sharded: 0, replicated: 0, experts: 0 };

function mixerParameters(m: Model, { mixer }: LayerForm): Omit<LayerParameters, "experts"> {
  if (mixer === "none") return nothing;
  if (isScan(mixer)) return scanParameters(m, mixer);
  return m.latent === undefined ? plainAttention(m) : latentAttention(m);
}

/** What a scanning layer has beside its two matrices: the convolution, the numbers of its heads, the gated norm. */
export function scanElementwise(m: Model, scan: Scan): number {
  const w = scanWidths(m, scan);
  const biases = m.bias ? w.projected + m.hidden : 0;
  return w.convolved * (w.taps + (w.convolutionBias ? 1 : 0)) + w.perHead + w.norm + biases;
}

function scanParameters(m: Model, scan: Scan): Omit<LayerParameters, "experts"> {
  const { projected, inner, norm, normShared } = scanWidths(m, scan);
  const replicated = (normShared ? norm : 0) + (m.bias ? m.hidden : 0);
  const all = m.hidden * (projected + inner) + scanElementwise(m, scan);
  return { sharded: all - replicated, replicated };
}

function plainAttention(m: Model): Omit<LayerParameters, "experts"> {
  const heads = m.heads * m.headDim;
  return {
    sharded:
      m.hidden * (qkvWidth(m) + heads) +
      (m.qkvBias ? qkvWidth(m) : 0) +
      (m.attentionSinks ? m.heads : 0) +
      (m.qkNorm === "all" ? heads + m.kvHeads * m.headDim : 0),
    replicated: (m.outputBias ? m.hidden : 0) + (m.qkNorm === "head" ? 2 * m.headDim : 0),
  };
}

/** Down projections are on every rank, up projections are split by heads (Megatron-LM's form). */
function latentAttention(m: Model): Omit<LayerParameters, "experts"> {
  const { queryRank, keyValueRank, nopeDim, ropeDim, valueDim } = m.latent!;
  const query = m.heads * m.headDim;
  const queries = queryRank === 0 ? m.hidden * query : queryRank * query;
  const keysAndValues = keyValueRank * m.heads * (nopeDim + valueDim);
  const down = m.hidden * (queryRank + keyValueRank + ropeDim);
  return {
    sharded: queries + keysAndValues + contextWidth(m) * m.hidden,
    replicated: down + queryRank + keyValueRank + (m.outputBias ? m.hidden : 0),
  };
}

function dense(m: Model, ffn: number): LayerParameters {
  const first = fc1Width(m, ffn);
  return {
    sharded: m.hidden * (first + ffn) + (m.bias ? first : 0),
    replicated: m.bias ? m.hidden : 0,
    experts: 0,
  };
}

function mixture(m: Model): LayerParameters {
  const e = m.experts!;
  const one = dense(m, e.ffn);
  const shared = e.sharedFfn > 0 ? dense(m, e.sharedFfn) : { sharded: 0, replicated: 0 };
  const router =
    m.hidden * e.count + (e.routerBias ? e.count : 0) + (e.selectionBias ? e.count : 0);
  return {
    sharded: shared.sharded,
    replicated: router + shared.replicated + (e.sharedGate ? m.hidden : 0),
    experts: e.count * (one.sharded + one.replicated),
  };
}
