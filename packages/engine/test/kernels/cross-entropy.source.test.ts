import fc from "fast-check";
import { expect, test } from "vitest";
import { Arena, expectClose } from "./arena.ts";

function reference(
  logits: ArrayLike<number>,
  targets: readonly number[],
  vocab: number,
  scale: number,
) {
  const losses = new Float64Array(targets.length);
  const gradient = new Float64Array(targets.length * vocab);
  targets.forEach((target, row) => {
    if (target < 0) return;
    const values = Array.from({ length: vocab }, (_, i) => logits[row * vocab + i]!);
    const top = Math.max(...values);
    const lse = top + Math.log(values.reduce((sum, x) => sum + Math.exp(x - top), 0));
    losses[row] = lse - values[target]!;
    values.forEach((x, i) => {
      gradient[row * vocab + i] = scale * (Math.exp(x - lse) - (i === target ? 1 : 0));
    });
  });
  return { losses, gradient };
}

test("losses and gradients of any vocabulary agree with float64; targets below 0 count nothing", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 70 }),
      fc.array(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), { maxLength: 6 }),
      fc.constantFrom(1, 30),
      (vocab, picks, size) => {
        const arena = new Arena({ seed: vocab, bytes: 1e6 });
        const rows = picks.length;
        const targets = picks.map((p) => (p < 0.2 ? -1 : Math.floor(p * vocab)));
        const logits = arena.normal(rows * vocab, size);
        const ids = arena.integers(targets);
        const [losses, only] = [arena.unset(rows), arena.unset(rows)];
        const wanted = reference(logits.values, targets, vocab, 0.25);
        arena.kernels.crossEntropyLoss(logits.pointer, ids.pointer, only.pointer, rows, vocab);
        arena.kernels.crossEntropy(logits.pointer, ids.pointer, losses.pointer, rows, vocab, 0.25);
        arena.checkGuards();
        expect(Array.from(only.values)).toEqual(Array.from(losses.values));
        // Logits near 100 are rounded to 4e-6 before exp sees them, relative to losses near 100.
        expectClose(losses.values, wanted.losses, 1e-6);
        expectClose(logits.values, wanted.gradient, 1e-6);
      },
    ),
    { numRuns: 80 },
  );
});

test("a target outside the vocabulary and logits that are not numbers show as NaN", () => {
  const arena = new Arena();
  const vocab = 9;
  const logits = arena.normal(4 * vocab);
  logits.values[1 * vocab + 2] = NaN;
  logits.values[2 * vocab + 8] = -Infinity;
  logits.values.fill(-Infinity, 3 * vocab, 4 * vocab);
  const losses = arena.unset(4);
  const targets = arena.integers([vocab, 0, 3, 1]);
  arena.kernels.crossEntropy(logits.pointer, targets.pointer, losses.pointer, 4, vocab, 1);
  const [outside, unknown, masked, nothing] = losses.values;
  expect([outside, unknown, nothing]).toEqual([NaN, NaN, NaN]);
  expect(masked).toBeGreaterThan(0);
  expect(logits.values[2 * vocab + 8]).toBe(0);
});

test("a gradient row sums to zero and has the same bits each time", () => {
  const rows = 3;
  const vocab = 257;
  const run = () => {
    const arena = new Arena({ seed: 5 });
    const logits = arena.normal(rows * vocab);
    const targets = arena.integers([0, 256, 100]);
    const losses = arena.unset(rows);
    arena.kernels.crossEntropy(logits.pointer, targets.pointer, losses.pointer, rows, vocab, 1);
    return Array.from(logits.values);
  };
  const gradient = run();
  for (let row = 0; row < rows; row++) {
    const sum = gradient.slice(row * vocab, (row + 1) * vocab).reduce((a, b) => a + b, 0);
    expect(Math.abs(sum)).toBeLessThan(1e-6);
  }
  expect(run()).toEqual(gradient);
});
