/**
 * Parameter counts to the digit. A layer is two norms, the attention projections and the
 * feed-forward block; for GPT form the sum is SC'21's 12Lh²(1 + 13/12h + (V+s)/12Lh) plus the final norm.
 */
import type { Model } from "./model.ts";

/** Parameters of a model by place; `total = embedding + layers × layer + final + head`. */
export interface ParameterCounts {
  readonly total: number;
  /** Token embedding and, if learned, the position table. */
  readonly embedding: number;
  /** One transformer layer. */
  readonly layer: number;
  /** The norm before the head. */
  readonly final: number;
  /** The output head; 0 when it is the token embedding. */
  readonly head: number;
}

/** Trainable parameters of `m`. */
export function parameters(m: Model): ParameterCounts {
  const { sharded, replicated } = layerParameters(m);
  const embedding = m.vocab * m.hidden + positionParameters(m);
  const layer = sharded + replicated;
  const final = normParameters(m);
  const head = m.tied ? 0 : m.vocab * m.hidden;
  return { total: embedding + m.layers * layer + final + head, embedding, layer, final, head };
}

/** Parameters of the learned position table, 0 without one. */
export function positionParameters(m: Model): number {
  return m.position === "learned" ? m.context * m.hidden : 0;
}

/** Parameters of one norm: a scale, and for LayerNorm a shift. */
export function normParameters(m: Model): number {
  return m.norm === "layernorm" ? 2 * m.hidden : m.hidden;
}

/** Output features of the fused query, key and value projection. */
export function qkvWidth(m: Model): number {
  return (m.heads + 2 * m.kvHeads) * m.headDim;
}

/** Output features of the first feed-forward projection: gate and up side by side for SwiGLU. */
export function fc1Width(m: Model): number {
  return m.activation === "swiglu" ? 2 * m.ffn : m.ffn;
}

/**
 * One layer's parameters, by what tensor parallelism does with them: weights and the biases of
 * column-parallel projections are sharded; norms and the biases of row-parallel ones are on every rank.
 */
export function layerParameters(m: Model): { sharded: number; replicated: number } {
  const weights = m.hidden * (qkvWidth(m) + m.heads * m.headDim + fc1Width(m) + m.ffn);
  const columnBias = (m.qkvBias ? qkvWidth(m) : 0) + (m.bias ? fc1Width(m) : 0);
  const rowBias = m.bias ? 2 * m.hidden : 0;
  return { sharded: weights + columnBias, replicated: 2 * normParameters(m) + rowBias };
}
