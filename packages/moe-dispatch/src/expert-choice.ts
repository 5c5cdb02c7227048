/**
 * Expert-choice routing (Zhou et al., arXiv:2202.09368): every expert takes the c tokens that score
 * it highest, c = T·capacityFactor/E, so that load is equal by construction. A token may end with no
 * expert or with many. Not causal: a token's experts depend on later tokens.
 */
import { softmaxScores } from "./scores.ts";
import { type Floats, type Routing, floatsLike, requireRow, tokensOf } from "./routing.ts";
import { requireLength, requireNumber } from "./shape.ts";

/** How many tokens an expert takes. */
export interface ExpertChoiceOptions {
  readonly experts: number;
  /** Experts per token on average. */
  readonly capacityFactor: number;
  /** [T] 1 for a padding token, which no expert takes and which does not count in T. */
  readonly padding?: Uint8Array;
}

/**
 * Routes `logits` [T, E] by the experts' choice; the weights are the softmax over all experts. The
 * routing's `topK` is the most experts that any token got; a token's experts are in ascending order.
 * Its gradient: `routeGradient` with `scoring: "softmax-before"`. O(E·T log T). A logit of −∞ masks an
 * expert; NaN and +∞ throw.
 */
export function expertChoice(logits: Floats, o: ExpertChoiceOptions): Routing {
  const { experts, padding } = o;
  const tokens = tokensOf(logits, experts);
  requireNumber("capacityFactor", o.capacityFactor, 0);
  if (padding !== undefined) requireLength("padding", padding, tokens, `${tokens} tokens`);
  for (let t = 0; t < tokens; t++) {
    if (padding === undefined || padding[t] === 0) requireRow(logits, t * experts, experts);
  }
  const scores = softmaxScores(logits, experts, padding);
  let real = tokens;
  if (padding !== undefined) for (const p of padding) if (p !== 0) real--;
  const each = Math.min(real, Math.floor((real * o.capacityFactor) / experts));

  const column = new Float64Array(tokens);
  const sorted = new Float64Array(tokens);
  const taken = new Int32Array(each * experts).fill(-1);
  const degree = new Int32Array(tokens);
  for (let e = 0; e < experts; e++) {
    for (let t = 0; t < tokens; t++) {
      const masked =
        (padding !== undefined && padding[t] !== 0) || logits[t * experts + e] === -Infinity;
      column[t] = masked ? -Infinity : scores[t * experts + e]!;
    }
    if (each === 0) continue;
    const found = largest(column, sorted, taken.subarray(e * each, (e + 1) * each));
    for (let i = 0; i < found; i++) degree[taken[e * each + i]!]!++;
  }

  const topK = degree.reduce((most, d) => Math.max(most, d), 0);
  const expertIds = new Int32Array(tokens * topK).fill(-1);
  const weights = floatsLike(logits, tokens * topK);
  const filled = new Int32Array(tokens);
  for (let i = 0; i < taken.length; i++) {
    const t = taken[i]!;
    if (t === -1) continue;
    const e = Math.floor(i / each);
    const slot = t * topK + filled[t]!++;
    expertIds[slot] = e;
    weights[slot] = scores[t * experts + e]!;
  }
  return { tokens, experts, topK, expertIds, weights };
}

/**
 * Places of as many of the largest values as `into` holds, ascending; of equal ones the first. −∞ is
 * never taken. Gives how many there are. A value to compare with, found by sorting: an expert takes
 * thousands of tokens, too many to be kept in order one by one.
 */
function largest(values: Float64Array, scratch: Float64Array, into: Int32Array): number {
  scratch.set(values);
  scratch.sort();
  const least = scratch[scratch.length - into.length]!;
  let equals = into.length;
  for (let i = scratch.length - 1; i >= 0 && scratch[i]! > least; i--) equals--;
  let found = 0;
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    if (value > least || (value === least && value > -Infinity && equals-- > 0)) into[found++] = i;
  }
  return found;
}
