import fc from "fast-check";
import { expect, test } from "vitest";
import { Arena, expectClose } from "./arena.ts";

const count = fc.oneof(fc.integer({ min: 0, max: 40 }), fc.constantFrom(255, 1000));

test("add, multiply, accumulate, copy, scale and fill do to each element what they say, and to no other", () => {
  fc.assert(
    fc.property(count, (n) => {
      const arena = new Arena({ seed: n, bytes: 1e6 });
      const [x, y, out] = [arena.normal(n), arena.normal(n), arena.unset(n)];
      const { kernels } = arena;
      const sum = x.values.map((v, i) => v + y.values[i]!);
      kernels.add(x.pointer, y.pointer, out.pointer, n);
      expect(Array.from(out.values)).toEqual(Array.from(sum));
      kernels.multiply(x.pointer, y.pointer, out.pointer, n);
      expect(Array.from(out.values)).toEqual(Array.from(x.values.map((v, i) => v * y.values[i]!)));
      kernels.accumulate(x.pointer, y.pointer, n);
      expect(Array.from(y.values)).toEqual(Array.from(sum));
      kernels.scale(y.pointer, 0.3, n);
      expect(Array.from(y.values)).toEqual(Array.from(sum.map((v) => Math.fround(0.3) * v)));
      kernels.copy(x.pointer, out.pointer, n);
      expect(Array.from(out.values)).toEqual(Array.from(x.values));
      kernels.fill(out.pointer, -2.5, n);
      expect(out.values.every((v) => v === -2.5)).toBe(true);
      arena.checkGuards();
    }),
  );
});

test("the sum of squares is float64's, also where float32 would overflow", () => {
  fc.assert(
    fc.property(count, (n) => {
      const arena = new Arena({ seed: n, bytes: 1e6 });
      const x = arena.normal(n, 1e25);
      const wanted = x.values.reduce((sum, v) => sum + v * v, 0);
      expect(Math.abs(arena.kernels.sumSquares(x.pointer, n) - wanted)).toBeLessThanOrEqual(
        1e-13 * wanted,
      );
    }),
  );
});

test("a bias is added to each row and its gradient is the column sums", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 35 }), fc.integer({ min: 1, max: 21 }), (rows, cols) => {
      const arena = new Arena({ seed: rows, bytes: 1e6 });
      const [x, bias, dbias] = [arena.normal(rows * cols), arena.normal(cols), arena.normal(cols)];
      const sums = Float64Array.from(dbias.values);
      x.values.forEach((v, i) => (sums[i % cols]! += v));
      const added = x.values.map((v, i) => v + bias.values[i % cols]!);
      arena.kernels.biasGradient(x.pointer, dbias.pointer, rows, cols);
      arena.kernels.addBias(x.pointer, bias.pointer, rows, cols);
      arena.checkGuards();
      expect(Array.from(x.values)).toEqual(Array.from(added));
      expectClose(dbias.values, sums, 2e-6); // 35 float32 additions of values near 1
    }),
  );
});

test("AdamW makes the published update, several steps in a row", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 23 }), fc.constantFrom(1, 0.25), (n, gradientScale) => {
      const arena = new Arena({ seed: n, bytes: 1e6 });
      const [p, m, v] = [arena.normal(n), arena.zeros(n), arena.zeros(n)];
      const wanted = Float64Array.from(p.values);
      const [first, second] = [new Float64Array(n), new Float64Array(n)];
      const [rate, beta1, beta2, epsilon, decay] = [0.01, 0.9, 0.999, 1e-8, 0.1];
      for (let step = 1; step <= 5; step++) {
        const g = arena.normal(n);
        const corrections = [1 - beta1 ** step, 1 - beta2 ** step] as const;
        for (let i = 0; i < n; i++) {
          const slope = gradientScale * g.values[i]!;
          first[i] = beta1 * first[i]! + (1 - beta1) * slope;
          second[i] = beta2 * second[i]! + (1 - beta2) * slope * slope;
          const size = Math.sqrt(second[i]! / corrections[1]) + epsilon;
          wanted[i]! -= rate * (first[i]! / corrections[0] / size + decay * wanted[i]!);
        }
        arena.kernels.adamw(
          p.pointer,
          g.pointer,
          m.pointer,
          v.pointer,
          n,
          rate,
          beta1,
          beta2,
          epsilon,
          decay,
          ...corrections,
          gradientScale,
        );
      }
      arena.checkGuards();
      // Each step rounds a few times at 6e-8 of values near 1.
      expectClose(p.values, wanted, 1e-6);
      expectClose(m.values, first, 1e-6);
      expectClose(v.values, second, 1e-6);
    }),
  );
});

test("a gradient of zero, infinity or NaN changes its own parameter only", () => {
  const arena = new Arena();
  const p = arena.floats([1, 1, 1, 1, 1]);
  const g = arena.floats([0, Infinity, NaN, 1, 0]);
  const [m, v] = [arena.zeros(5), arena.zeros(5)];
  const { kernels } = arena;
  kernels.adamw(
    p.pointer,
    g.pointer,
    m.pointer,
    v.pointer,
    5,
    0.1,
    0.9,
    0.99,
    1e-8,
    0,
    0.1,
    0.01,
    1,
  );
  expect(p.values[0]).toBe(1);
  expect(p.values[1]).toBeNaN();
  expect(p.values[2]).toBeNaN();
  expect(p.values[3]).toBeCloseTo(0.9, 6);
  expect(p.values[4]).toBe(1);
});
