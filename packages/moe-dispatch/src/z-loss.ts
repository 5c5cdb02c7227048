/** Router z-loss (ST-MoE, arXiv:2202.08906 eq. 5): keeps logits small, and so their softmax exact. */
import type { LossAndGradient } from "./balance-loss.ts";
import { softmaxRow } from "./scores.ts";
import { type Floats, floatsLike, tokensOf } from "./routing.ts";
import { requireInteger, requireLength, requireNumber } from "./shape.ts";

/** What the z-loss is taken over. */
export interface ZLossOptions {
  readonly experts: number;
  readonly coefficient: number;
  /** Tokens of the whole batch that these are a shard of (padding excluded); default these. */
  readonly wholeTokens?: number;
  /** [T] 1 for a padding token: in no mean and no gradient. */
  readonly padding?: Uint8Array;
}

/** coefficient · mean over tokens of (log Σ exp logits)², and its gradient. No tokens give 0. */
export function zLoss(logits: Floats, o: ZLossOptions): LossAndGradient {
  const { experts, padding } = o;
  const tokens = tokensOf(logits, experts);
  requireNumber("coefficient", o.coefficient, 0);
  if (padding !== undefined) requireLength("padding", padding, tokens, `${tokens} tokens`);
  let counted = o.wholeTokens ?? tokens;
  requireInteger("wholeTokens", counted, 0);
  if (o.wholeTokens === undefined && padding !== undefined) {
    for (const p of padding) if (p !== 0) counted--;
  }
  const gradient = floatsLike(logits, logits.length);
  let value = 0;
  if (counted === 0) return { value, gradient };
  const factor = o.coefficient / counted;
  const p = new Float64Array(experts);
  for (let t = 0; t < tokens; t++) {
    if (padding !== undefined && padding[t] !== 0) continue;
    const row = t * experts;
    const z = softmaxRow(logits, row, experts, p, 0);
    if (z === -Infinity) continue;
    value += factor * z * z;
    for (let e = 0; e < experts; e++) gradient[row + e] = 2 * factor * z * p[e]!;
  }
  return { value, gradient };
}
