/**
 * Encoders: a patch projection, learned positions, bidirectional layers, a norm, and a projector whose
 * inner layers have biases as their encoder's do (ViT, arXiv 2010.11929; LLaVA, arXiv 2310.03744).
 */
import type { Encoder, Model } from "./model.ts";
import { isGated } from "./model.ts";

/** Parameters of an encoder. */
export interface EncoderParameters {
  readonly total: number;
  /** Without the projector. */
  readonly trunk: number;
  /** Split over tensor-parallel ranks. */
  readonly sharded: number;
  /** On every tensor-parallel rank. */
  readonly replicated: number;
  /**
   * Of these, what sequence-parallel ranks apply to their part of the tokens: norms, and biases behind row-parallel
   * products.
   */
  readonly byTokens: number;
}

/** Parameters of an encoder in front of `m`. */
export function encoderParameters(m: Model, e: Encoder): EncoderParameters {
  const { hidden: h, ffn, bias } = e;
  const first = isGated(e.activation) ? 2 * ffn : ffn;
  const norm = e.norm === "layernorm" ? 2 * h : h;
  const sharded = e.layers * (h * (4 * h + first + ffn) + (bias ? 3 * h + first : 0));
  const inner = e.layers * (2 * norm + (bias ? 2 * h : 0));
  const input = e.patch * h + (bias ? h : 0) + e.positionRows * h;
  const widths = projectorWidths(m, e);
  let projector = 0;
  for (let i = 1; i < widths.length; i++)
    projector += (widths[i - 1]! + (bias ? 1 : 0)) * widths[i]!;
  const replicated = inner + input + (e.embeddingNorm ? 2 : 1) * norm + projector;
  return {
    total: sharded + replicated,
    trunk: sharded + replicated - projector,
    sharded,
    replicated,
    byTokens: inner + (e.embeddingNorm ? 2 : 1) * norm,
  };
}

/** Elements of the matrices that every encoded token is multiplied by. */
export function encoderMatrices(e: Encoder): number {
  const first = isGated(e.activation) ? 2 * e.ffn : e.ffn;
  return e.layers * e.hidden * (4 * e.hidden + first + e.ffn) + e.patch * e.hidden;
}

/** Elements of the projector's matrices. */
export function projectorMatrices(m: Model, e: Encoder): number {
  const widths = projectorWidths(m, e);
  return widths.slice(1).reduce((sum, width, i) => sum + widths[i]! * width, 0);
}

/** Whether backward reaches an encoder's layers: not where it is frozen, nor where adapters alone are trained. */
export function trainsEncoder(m: Model, e: Encoder): boolean {
  return !e.frozen && m.adapter === undefined;
}

/** Widths through the projector: merged tokens in, the decoder's hidden out. */
export function projectorWidths(m: Model, e: Encoder): readonly number[] {
  return [e.hidden * e.merge, ...e.projector, m.hidden];
}

/** Tokens of the decoder's sequence that the encoder's output takes, per sample. */
export function decoderTokens(e: Encoder): number {
  return e.tokens / e.merge;
}
