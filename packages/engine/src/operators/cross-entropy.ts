import type { Tape, Variable } from "../tape.ts";
import { matrixDims, view } from "../tensor.ts";

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

/** Summed in double precision, in order: the same on every layout that has the same rows. */
function sum(values: Float32Array): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}
