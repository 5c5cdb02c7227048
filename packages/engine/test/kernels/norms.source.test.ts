import fc from "fast-check";
import { expect, test } from "vitest";
import { Arena, dot, expectClose, numericGradient } from "./arena.ts";

const eps = 1e-5;

/** Layer norm (or, without the mean, RMS norm) of each row in float64. */
function normalise(
  x: ArrayLike<number>,
  gain: ArrayLike<number>,
  bias: ArrayLike<number> | undefined,
  cols: number,
): Float64Array {
  const y = new Float64Array(x.length);
  for (let at = 0; at < x.length; at += cols) {
    const row = Array.from({ length: cols }, (_, i) => x[at + i]!);
    const mean = bias === undefined ? 0 : row.reduce((sum, v) => sum + v, 0) / cols;
    const variance = row.reduce((sum, v) => sum + (v - mean) ** 2, 0) / cols;
    for (let i = 0; i < cols; i++) {
      y[at + i] = ((row[i]! - mean) / Math.sqrt(variance + eps)) * gain[i]! + (bias?.[i] ?? 0);
    }
  }
  return y;
}

/** Values about the centre, a unit above and below in turn, so that no row is almost constant. */
function spread(x: Float32Array, centre: number): void {
  x.forEach((v, i) => (x[i] = centre + (i % 2 === 0 ? 1 : -1) + 0.2 * v));
}

const shape = fc.record({
  rows: fc.integer({ min: 0, max: 9 }),
  cols: fc.constantFrom(1, 2, 3, 4, 5, 8, 13, 32, 63),
  centre: fc.constantFrom(0, 5),
});

// A few float32 roundings of values near 10; one column has no variance and eps divides its noise.
const tolerance = 2e-5;

test("layer norm and its three gradients agree with float64 and finite differences", () => {
  fc.assert(
    fc.property(shape, ({ rows, cols, centre }) => {
      const arena = new Arena({ seed: rows * 64 + cols, bytes: 1e6 });
      const n = rows * cols;
      const x = arena.normal(n);
      spread(x.values, centre);
      const [gain, bias, dy] = [arena.normal(cols), arena.normal(cols), arena.normal(n)];
      const [y, dx, mean, rstd] = [
        arena.unset(n),
        arena.unset(n),
        arena.unset(rows),
        arena.unset(rows),
      ];
      const [dgain, dbias] = [arena.floats(new Float32Array(cols).fill(2)), arena.zeros(cols)];
      const p = { x: x.pointer, gain: gain.pointer, mean: mean.pointer, rstd: rstd.pointer };
      const { kernels } = arena;
      kernels.layerNormForward(
        p.x,
        p.gain,
        bias.pointer,
        y.pointer,
        p.mean,
        p.rstd,
        rows,
        cols,
        eps,
      );
      kernels.layerNormBackward(
        p.x,
        p.gain,
        p.mean,
        p.rstd,
        dy.pointer,
        dx.pointer,
        dgain.pointer,
        dbias.pointer,
        rows,
        cols,
      );
      arena.checkGuards();
      const [X, G, B, D] = [x.values, gain.values, bias.values, dy.values];
      expectClose(y.values, normalise(X, G, B, cols), tolerance);
      if (cols === 1) return;
      const slope = (f: (v: Float64Array) => Float64Array, at: Float32Array) =>
        numericGradient((v) => dot(f(v), D), at);
      expectClose(
        dx.values,
        slope((v) => normalise(v, G, B, cols), X),
        tolerance,
      );
      expectClose(
        dgain.values.map((v) => v - 2),
        slope((v) => normalise(X, v, B, cols), G),
        tolerance,
      );
      expectClose(
        dbias.values,
        slope((v) => normalise(X, G, v, cols), B),
        tolerance,
      );
    }),
    { numRuns: 60 },
  );
});

test("RMS norm and its two gradients agree with float64 and finite differences", () => {
  fc.assert(
    fc.property(shape, ({ rows, cols, centre }) => {
      const arena = new Arena({ seed: rows * 64 + cols, bytes: 1e6 });
      const n = rows * cols;
      const x = arena.normal(n);
      spread(x.values, centre);
      const [gain, dy] = [arena.normal(cols), arena.normal(n)];
      const [y, rstd, dx, dgain] = [
        arena.unset(n),
        arena.unset(rows),
        arena.unset(n),
        arena.zeros(cols),
      ];
      const { kernels } = arena;
      kernels.rmsNormForward(x.pointer, gain.pointer, y.pointer, rstd.pointer, rows, cols, eps);
      kernels.rmsNormBackward(
        x.pointer,
        gain.pointer,
        rstd.pointer,
        dy.pointer,
        dx.pointer,
        dgain.pointer,
        rows,
        cols,
      );
      arena.checkGuards();
      const [X, G, D] = [x.values, gain.values, dy.values];
      expectClose(y.values, normalise(X, G, undefined, cols), tolerance);
      const slope = (f: (v: Float64Array) => Float64Array, at: Float32Array) =>
        numericGradient((v) => dot(f(v), D), at);
      expectClose(
        dx.values,
        slope((v) => normalise(v, G, undefined, cols), X),
        tolerance,
      );
      expectClose(
        dgain.values,
        slope((v) => normalise(X, v, undefined, cols), G),
        tolerance,
      );
    }),
    { numRuns: 60 },
  );
});

test("dx may be written over dy, and y over x", () => {
  const arena = new Arena();
  const [rows, cols] = [5, 21];
  const [x, gain, bias, dy] = [rows * cols, cols, cols, rows * cols].map((n) => arena.normal(n));
  const [y, dx] = [arena.unset(rows * cols), arena.unset(rows * cols)];
  const [mean, rstd] = [arena.unset(rows), arena.unset(rows)];
  const [dgain, dbias] = [arena.zeros(cols), arena.zeros(cols)];
  const sums = [dgain.pointer, dbias.pointer, rows, cols] as const;
  const saved = [x!.pointer, gain!.pointer, mean.pointer, rstd.pointer] as const;
  const forward = (to: number) =>
    arena.kernels.layerNormForward(
      x!.pointer,
      gain!.pointer,
      bias!.pointer,
      to,
      mean.pointer,
      rstd.pointer,
      rows,
      cols,
      eps,
    );
  forward(y.pointer);
  arena.kernels.layerNormBackward(...saved, dy!.pointer, dx.pointer, ...sums);
  arena.kernels.layerNormBackward(...saved, dy!.pointer, dy!.pointer, ...sums);
  expect(Array.from(dy!.values)).toEqual(Array.from(dx.values));
  forward(x!.pointer);
  expect(Array.from(x!.values)).toEqual(Array.from(y.values));
});
