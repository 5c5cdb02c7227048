/**
 * Expert-choice routing (Zhou et al., arXiv:2202.09368): every expert takes the c tokens that score
 * it highest, c = T·capacityFactor/E, so that load is equal by construction. A token may end with no
 * expert or with many. Not causal: a token's experts depend on later tokens.
 */
import { TriremeError } from "@trireme/core";
import { softmaxScores } from "./scores.ts";
import { type Floats, type Routing, floatsLike, tokensOf } from "./routing.ts";
import { requireLength, requireNumber } from "./shape.ts";
import { selectTopK } from "./top-k.ts";

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
 * Its gradient: `routeGradient` with `scoring: "softmax-before"`.
 */
export function expertChoice(logits: Floats, o: ExpertChoiceOptions): Routing {
  const { experts, padding } = o;
  const tokens = tokensOf(logits, experts);
  requireNumber("capacityFactor", o.capacityFactor, 0);
  if (padding !== undefined) requireLength("padding", padding, tokens, `${tokens} tokens`);
  const scores = softmaxScores(logits, experts, padding);
  let real = tokens;
  if (padding !== undefined) for (const p of padding) if (p !== 0) real--;
  const each = Math.min(real, Math.floor((real * o.capacityFactor) / experts));

  const column = new Float64Array(tokens);
  const taken = new Int32Array(each * experts);
  const kept = new Float64Array(each);
  const degree = new Int32Array(tokens);
  for (let e = 0; e < experts; e++) {
    for (let t = 0; t < tokens; t++) {
      const masked =
        (padding !== undefined && padding[t] !== 0) || logits[t * experts + e] === -Infinity;
      column[t] = masked ? -Infinity : scores[t * experts + e]!;
    }
    const found = selectTopK(column, 0, tokens, each, taken, e * each, kept);
    if (found < 0) {
      throw new TriremeError(
        "MOE_NOT_FINITE",
        `expert ${e} has a score that is not finite; logits must be finite, or -Infinity to mask`,
      );
    }
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
