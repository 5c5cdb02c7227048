/**
 * What a router decides: for every token, up to `topK` experts and the weight of each one's output
 * in the token's result. Legend: T tokens, E experts, k experts per token (topK).
 *
 * All arrays are flat and row-major; slot t·k + j is choice j of token t. The id −1 marks a slot
 * without an expert: a padding token, a dropped choice, or a token with fewer than k experts.
 */
import { TriremeError } from "@trireme/core";
import { requireInteger, requireLength } from "./shape.ts";

/** Single or double precision: what goes in as one comes out as the same. */
export type Floats = Float32Array | Float64Array;

/** The experts of every token and their weights. */
export interface Routing {
  readonly tokens: number;
  readonly experts: number;
  /** Slots per token. */
  readonly topK: number;
  /** [T, k] expert of each slot, best first; −1 for none. */
  readonly expertIds: Int32Array;
  /** [T, k] weight of each slot; 0 where there is no expert. */
  readonly weights: Floats;
}

/** Throws unless the arrays of `routing` fit its sizes and name its experts. */
export function checkRouting(routing: Routing): void {
  const { tokens, experts, topK, expertIds, weights } = routing;
  requireInteger("tokens", tokens, 0);
  requireInteger("experts", experts, 1);
  requireInteger("topK", topK, 0);
  requireLength("expertIds", expertIds, tokens * topK, `${tokens} tokens x top-${topK}`);
  requireLength("weights", weights, tokens * topK, `${tokens} tokens x top-${topK}`);
  for (let slot = 0; slot < expertIds.length; slot++) {
    const e = expertIds[slot]!;
    if (e < -1 || e >= experts) throw unknownExpert(slot, e, experts);
  }
}

/** Throws where a logit of the row that starts at `row` is NaN or +∞; −∞ masks an expert. */
export function requireRow(logits: Floats, row: number, experts: number): void {
  for (let e = row; e < row + experts; e++) {
    if (!(logits[e]! < Infinity)) throw notFinite(logits, row, experts);
  }
}

/** The error for a row of logits that has NaN or +∞. */
export function notFinite(logits: Floats, row: number, experts: number): TriremeError {
  let e = 0;
  while (e < experts - 1 && logits[row + e]! < Infinity) e++;
  return new TriremeError(
    "MOE_NOT_FINITE",
    `token ${row / experts} has logit ${logits[row + e]} at expert ${e}; logits must be finite, or -Infinity to mask an expert`,
  );
}

/**
 * Tokens that chose each expert: [E], 64-bit floats, so that counts added up over a long run or a
 * whole cluster stay exact to 2⁵³.
 *
 * @param into Counts to add to, instead of a new array.
 */
export function tokensPerExpert(
  expertIds: Int32Array,
  experts: number,
  into: Float64Array = new Float64Array(experts),
): Float64Array {
  requireInteger("experts", experts, 1);
  requireLength("counts", into, experts, `${experts} experts`);
  for (let slot = 0; slot < expertIds.length; slot++) {
    const e = expertIds[slot]!;
    if (e === -1) continue;
    if (e < 0 || e >= experts) throw unknownExpert(slot, e, experts);
    into[e]!++;
  }
  return into;
}

/** The error for an id that is neither −1 nor an expert. */
export function unknownExpert(slot: number, e: number, experts: number): TriremeError {
  return new TriremeError(
    "MOE_EXPERT",
    `slot ${slot} names expert ${e}, but experts are 0..${experts - 1}, and -1 is none`,
  );
}

/** An empty array of the same precision as `like`. */
export function floatsLike(like: Floats, length: number): Floats {
  return like instanceof Float64Array ? new Float64Array(length) : new Float32Array(length);
}

/** Tokens in `logits` of `experts` columns. */
export function tokensOf(logits: Floats, experts: number): number {
  requireInteger("experts", experts, 1);
  if (logits.length % experts !== 0) {
    throw new TriremeError(
      "MOE_SHAPE",
      `logits hold ${logits.length} numbers, which is no whole number of rows of ${experts} experts`,
    );
  }
  return logits.length / experts;
}
