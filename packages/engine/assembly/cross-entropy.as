/**
 * Softmax and cross-entropy in one pass over each row of logits, without one-hot labels: the loss
 * of a row is logsumexp - logit[target], its gradient softmax - onehot. Rows whose target is below
 * 0 are left out: loss 0, gradient 0. A target past the vocabulary has no loss: it gives NaN.
 */

import { scale as scaleValues } from "./elementwise";
import { exp2Term4, firstLanes, loadPartial, LOG2E, max4, storePartial, sum4 } from "./vector-math";
import { log64 } from "./scalar-math";

/** Greatest of n >= 1 floats; a NaN may pass unseen: it shows in the sum of exponentials. */
export function rowMaximum(x: usize, n: i32): f32 {
  if (n < 4) {
    let greatest = load<f32>(x);
    for (let i = 1; i < n; i++) greatest = max<f32>(greatest, load<f32>(x + ((<usize>i) << 2)));
    return greatest;
  }
  // The last four overlap what came before: a maximum does not mind.
  const last = (<usize>(n - 4)) << 2;
  let greatest = v128.load(x + last);
  let other = greatest;
  let at: usize = 0;
  for (const end = (<usize>(n & -8)) << 2; at < end; at += 32) {
    greatest = f32x4.pmax(greatest, v128.load(x + at));
    other = f32x4.pmax(other, v128.load(x + at, 16));
  }
  if (at < last) greatest = f32x4.pmax(greatest, v128.load(x + at));
  return max4(f32x4.pmax(greatest, other));
}

/** Sum of exp(x - shift) over n floats; with `keep` the terms are written over x. */
export function sumExponentials(x: usize, n: i32, shift: f32, keep: bool): f32 {
  const shifts = f32x4.splat(shift);
  const factor = f32x4.splat(LOG2E);
  const end = (<usize>(n & -4)) << 2;
  let sums = f32x4.splat(0);
  let at: usize = 0;
  for (; at < end; at += 16) {
    const term = exp2Term4(f32x4.mul(f32x4.sub(v128.load(x + at), shifts), factor));
    if (keep) v128.store(x + at, term);
    sums = f32x4.add(sums, term);
  }
  const tail = n & 3;
  if (tail) {
    const distance = f32x4.sub(loadPartial(x + at, tail), shifts);
    const term = v128.and(exp2Term4(f32x4.mul(distance, factor)), firstLanes(tail));
    if (keep) storePartial(x + at, term, tail);
    sums = f32x4.add(sums, term);
  }
  return sum4(sums);
}

/** losses[rows] only; logits[rows, vocab] stay as they are. */
export function crossEntropyLoss(
  logits: usize,
  targets: usize,
  losses: usize,
  rows: i32,
  vocab: i32,
): void {
  for (let row = 0; row < rows; row++) {
    const target = load<i32>(targets);
    if (<u32>target >= <u32>vocab) {
      store<f32>(losses, target < 0 ? 0 : NaN);
    } else {
      const greatest = rowMaximum(logits, vocab);
      const sum = sumExponentials(logits, vocab, greatest, false);
      const distance = <f64>greatest - <f64>load<f32>(logits + ((<usize>target) << 2));
      store<f32>(losses, <f32>(log64(sum) + distance));
    }
    targets += 4;
    losses += 4;
    logits += (<usize>vocab) << 2;
  }
}

/** losses[rows], and logits[rows, vocab] replaced by scale * (softmax - onehot). */
export function crossEntropy(
  logits: usize,
  targets: usize,
  losses: usize,
  rows: i32,
  vocab: i32,
  scale: f32,
): void {
  const bytes = (<usize>vocab) << 2;
  for (let row = 0; row < rows; row++) {
    const target = load<i32>(targets);
    if (<u32>target >= <u32>vocab) {
      store<f32>(losses, target < 0 ? 0 : NaN);
      memory.fill(logits, 0, bytes);
    } else {
      const at = logits + ((<usize>target) << 2);
      const greatest = rowMaximum(logits, vocab);
      const distance = <f64>greatest - <f64>load<f32>(at);
      const sum = sumExponentials(logits, vocab, greatest, true);
      store<f32>(losses, <f32>(log64(sum) + distance));
      scaleValues(logits, scale / sum, vocab);
      store<f32>(at, load<f32>(at) - scale);
    }
    targets += 4;
    losses += 4;
    logits += bytes;
  }
}
