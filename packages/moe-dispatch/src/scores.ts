/** Scores of all experts, [T, E], each row a distribution: what balance losses average. */
import { exp } from "./exp.ts";
import { type Floats, floatsLike, tokensOf } from "./routing.ts";
import { requireLength } from "./shape.ts";

/** Softmax of every row; rows of padding tokens and rows of −∞ alone are 0. */
export function softmaxScores(logits: Floats, experts: number, padding?: Uint8Array): Floats {
  return scoreRows(logits, experts, padding, softmaxRow);
}

/** Sigmoids of every row divided by their sum (DeepSeek-V3 eq. 19); rows of padding tokens are 0. */
export function sigmoidScores(logits: Floats, experts: number, padding?: Uint8Array): Floats {
  return scoreRows(logits, experts, padding, sigmoidRow);
}

/** Softmax of `from[start, start + n)` to `to[at, at + n)`; gives the log of the sum of exponentials. */
export function softmaxRow(from: Floats, start: number, n: number, to: Floats, at: number): number {
  let largest = -Infinity;
  for (let e = 0; e < n; e++) if (from[start + e]! > largest) largest = from[start + e]!;
  if (largest === -Infinity) {
    to.fill(0, at, at + n);
    return -Infinity;
  }
  let total = 0;
  for (let e = 0; e < n; e++) {
    const x = exp(from[start + e]! - largest);
    to[at + e] = x;
    total += x;
  }
  const factor = 1 / total;
  for (let e = 0; e < n; e++) to[at + e]! *= factor;
  return largest + Math.log(total);
}

/** Normalised sigmoids of `from[start, start + n)` to `to[at, at + n)`; gives the sum of the sigmoids. */
export function sigmoidRow(from: Floats, start: number, n: number, to: Floats, at: number): number {
  let total = 0;
  for (let e = 0; e < n; e++) {
    const x = 1 / (1 + exp(-from[start + e]!));
    to[at + e] = x;
    total += x;
  }
  const factor = total === 0 ? 0 : 1 / total;
  for (let e = 0; e < n; e++) to[at + e]! *= factor;
  return total;
}

function scoreRows(
  logits: Floats,
  experts: number,
  padding: Uint8Array | undefined,
  row: typeof softmaxRow,
): Floats {
  const tokens = tokensOf(logits, experts);
  if (padding !== undefined) requireLength("padding", padding, tokens, `${tokens} tokens`);
  const scores = floatsLike(logits, logits.length);
  for (let t = 0; t < tokens; t++) {
    if (padding !== undefined && padding[t] !== 0) continue;
    row(logits, t * experts, experts, scores, t * experts);
  }
  return scores;
}
