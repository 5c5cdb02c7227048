import { expect, test } from "vitest";
import { Arena, expectClose } from "./arena.ts";

const [rows, vocab] = [6, 23];

/** Rows of the whole matrix cut into parts of these widths, as ranks hold them. */
function parts(widths: readonly number[], seed: number) {
  const arena = new Arena({ seed });
  const { kernels } = arena;
  const whole = arena.normal(rows * vocab);
  // One row far from zero: sums of its exponentials alone would overflow.
  for (let i = 0; i < vocab; i++) whole.values[i]! += 300;
  const targets = Array.from({ length: rows }, (_, row) => (row * 7 + 3) % vocab);
  const losses = arena.unset(rows);
  const copy = arena.unset(rows * vocab);
  copy.values.set(whole.values);
  const scale = 0.25;
  kernels.crossEntropy(
    copy.pointer,
    arena.integers(targets).pointer,
    losses.pointer,
    rows,
    vocab,
    scale,
  );
  let start = 0;
  const all = arena.unset(widths.length * rows * 3);
  const shards = widths.map((width, rank) => {
    const logits = arena.unset(rows * width);
    for (let row = 0; row < rows; row++) {
      const from = row * vocab + start;
      logits.values.set(whole.values.subarray(from, from + width), row * width);
    }
    const local = targets.map((t) => (t >= start && t < start + width ? t - start : -1));
    const ids = arena.integers(local).pointer;
    kernels.vocabLossPart(logits.pointer, ids, all.pointer + rank * rows * 12, rows, width);
    start += width;
    return { logits, ids, width, start: start - width };
  });
  const [mine, totals] = [arena.unset(rows), arena.unset(rows * 2)];
  kernels.vocabLossTotal(all.pointer, mine.pointer, totals.pointer, widths.length, rows);
  for (const { logits, ids, width } of shards) {
    kernels.vocabLossGradient(logits.pointer, ids, totals.pointer, rows, width, scale);
  }
  arena.checkGuards();
  return { losses, mine, shards, gradient: copy };
}

// Exponentials of float32 differences, summed in another order.
const tolerance = 1e-6;

test.each([[[23]], [[12, 11]], [[1, 2, 20]], [[8, 8, 7]]])(
  "a vocabulary in parts of %j has the loss and gradient of the whole",
  (widths) => {
    const { losses, mine, shards, gradient } = parts(widths, widths.length);
    expectClose(mine.values, losses.values, tolerance);
    for (const { logits, width, start } of shards) {
      for (let row = 0; row < rows; row++) {
        for (let i = 0; i < width; i++) {
          const wanted = gradient.values[row * vocab + start + i]!;
          expect(Math.abs(logits.values[row * width + i]! - wanted)).toBeLessThan(tolerance);
        }
      }
    }
  },
);
