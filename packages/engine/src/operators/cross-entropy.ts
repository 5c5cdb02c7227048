import type { LayerGroup } from "../layout/recorded-group.ts";
import type { Tape, Variable } from "../tape/tape.ts";
import { type Tensor, matrixDims, view } from "../memory/tensor.ts";

/**
 * The sum over rows of −log softmax(logits)[target], for logits [rows, vocab] and `targets` pointing
 * to i32; rows with a negative target count nothing. The logits are overwritten by their gradient
 * times `scale`, so that no second array of that size exists.
 */
export function crossEntropy(tape: Tape, logits: Variable, targets: number, scale: number): number {
  const [rows, vocab] = matrixDims(logits.value);
  const losses = tape.allocate([rows]);
  tape.kernels.crossEntropy(logits.value.pointer, targets, losses.pointer, rows, vocab, scale);
  // The output's own gradient is 1: the loss is where the backward begins.
  tape.record({
    input: () => {
      logits.gradient = logits.value;
    },
  });
  return sum(view(tape.pool.memory, losses));
}

/** The same loss without a gradient: the logits are left as they are. */
export function crossEntropyLoss(tape: Tape, logits: Variable, targets: number): number {
  const [rows, vocab] = matrixDims(logits.value);
  const losses = tape.allocate([rows]);
  tape.kernels.crossEntropyLoss(logits.value.pointer, targets, losses.pointer, rows, vocab);
  return sum(view(tape.pool.memory, losses));
}

/**
 * The loss where each rank of `group` has the logits [rows, part] of its part of the vocabulary, and
 * targets that lie in another part are below 0. With `scale` the logits are overwritten by their
 * gradient. Returns the same sum on all ranks.
 */
export function vocabParallelLoss(
  tape: Tape,
  logits: Variable,
  targets: number,
  group: LayerGroup,
  scale?: number,
): number {
  const { kernels, pool } = tape;
  const { memory } = pool;
  const [rows, width] = matrixDims(logits.value);
  const all = pool.allocate([group.ranks, rows, 3]);
  const mine: Tensor = {
    pointer: all.pointer + group.rank * rows * 12,
    dims: [rows, 3],
    size: rows * 3,
  };
  kernels.vocabLossPart(logits.value.pointer, targets, mine.pointer, rows, width);
  group.allGather(view(memory, mine), view(memory, all)).wait();
  const [losses, totals] = [pool.allocate([rows]), pool.allocate([rows, 2])];
  kernels.vocabLossTotal(all.pointer, losses.pointer, totals.pointer, group.ranks, rows);
  const loss = sum(view(memory, losses));
  if (scale !== undefined) {
    const { pointer } = logits.value;
    kernels.vocabLossGradient(pointer, targets, totals.pointer, rows, width, scale);
    tape.record({
      input: () => {
        logits.gradient = logits.value;
      },
    });
  }
  for (const used of [all, losses, totals]) pool.free(used);
  return loss;
}

/** Summed in double precision, in order: the same on every layout that has the same rows. */
function sum(values: Float32Array): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}
