/**
 * Softmax and cross-entropy over a vocabulary that ranks share out: each rank sums over its part of
 * a row, the parts meet once, three numbers a row, and each rank takes the gradient of its part
 * (Shoeybi et al., Megatron-LM, 2019, section 3). Targets outside of a rank's part are below 0.
 */

import { rowMaximum, sumExponentials } from "./cross-entropy";
import { scale as scaleValues } from "./elementwise";
import { exp64, log64 } from "./scalar-math";

/** parts[rows, 3] = the row's maximum, the sum of exp(x - maximum), and the target's logit or 0. */
export function vocabLossPart(
  logits: usize,
  targets: usize,
  parts: usize,
  rows: i32,
  vocab: i32,
): void {
  for (let row = 0; row < rows; row++) {
    const target = load<i32>(targets);
    const greatest = rowMaximum(logits, vocab);
    store<f32>(parts, greatest);
    store<f32>(parts, sumExponentials(logits, vocab, greatest, false), 4);
    const logit: f32 = target < 0 ? 0 : load<f32>(logits + ((<usize>target) << 2));
    store<f32>(parts, logit, 8);
    targets += 4;
    parts += 12;
    logits += (<usize>vocab) << 2;
  }
}

/** losses[rows] and totals[rows, 2] = maximum and sum of the whole row, of parts[ranks, rows, 3]. */
export function vocabLossTotal(
  parts: usize,
  losses: usize,
  totals: usize,
  ranks: i32,
  rows: i32,
): void {
  const stride = <usize>(rows * 12);
  for (let row = 0; row < rows; row++) {
    let greatest: f32 = -Infinity;
    for (let rank = 0; rank < ranks; rank++) {
      greatest = max<f32>(greatest, load<f32>(parts + <usize>rank * stride));
    }
    let sum: f64 = 0;
    let logit: f64 = 0;
    for (let rank = 0; rank < ranks; rank++) {
      const at = parts + <usize>rank * stride;
      sum += <f64>load<f32>(at, 4) * exp64(max<f64>(-700, <f64>load<f32>(at) - <f64>greatest));
      logit += <f64>load<f32>(at, 8);
    }
    store<f32>(losses, <f32>(log64(sum) + <f64>greatest - logit));
    store<f32>(totals, greatest);
    store<f32>(totals, <f32>sum, 4);
    parts += 12;
    losses += 4;
    totals += 8;
  }
}

/** logits[rows, vocab] = scale * (softmax - onehot), with the totals of the whole rows. */
export function vocabLossGradient(
  logits: usize,
  targets: usize,
  totals: usize,
  rows: i32,
  vocab: i32,
  scale: f32,
): void {
  for (let row = 0; row < rows; row++) {
    const target = load<i32>(targets);
    sumExponentials(logits, vocab, load<f32>(totals), true);
    scaleValues(logits, scale / load<f32>(totals, 4), vocab);
    if (target >= 0) {
      const at = logits + ((<usize>target) << 2);
      store<f32>(at, load<f32>(at) - scale);
    }
    targets += 4;
    totals += 8;
    logits += (<usize>vocab) << 2;
  }
}
