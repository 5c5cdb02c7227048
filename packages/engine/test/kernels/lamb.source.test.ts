import fc from "fast-check";
import { expect, test } from "vitest";
import { Arena, expectClose } from "./arena.ts";

const [beta1, beta2, epsilon, decay, rate] = [0.9, 0.999, 1e-6, 0.1, 0.02];

test("LAMB's two passes follow the paper's formula for any count and scale", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 23 }), fc.constantFrom(1, 0.25), (n, gradientScale) => {
      const arena = new Arena({ seed: n, bytes: 1e6 });
      const { kernels } = arena;
      const [p, m, v] = [arena.normal(n), arena.zeros(n), arena.zeros(n)];
      const sums = arena.workspace(16);
      const read = (): Float64Array => {
        const bytes = Uint8Array.from(new Uint8Array(p.values.buffer, sums, 16));
        return new Float64Array(bytes.buffer);
      };
      const wanted = Float64Array.from(p.values);
      const [first, second] = [new Float64Array(n), new Float64Array(n)];
      for (let step = 1; step <= 4; step++) {
        const g = arena.normal(n);
        const [c1, c2] = [1 - beta1 ** step, 1 - beta2 ** step];
        const before = p.values.reduce((sum, x) => sum + x * x, 0);
        const way = wanted.map((x, i) => {
          const slope = gradientScale * g.values[i]!;
          first[i] = beta1 * first[i]! + (1 - beta1) * slope;
          second[i] = beta2 * second[i]! + (1 - beta2) * slope * slope;
          return first[i] / c1 / (Math.sqrt(second[i] / c2) + epsilon) + decay * x;
        });
        new Uint8Array(p.values.buffer, sums, 16).fill(0);
        const corrections = [c1, c2] as const;
        kernels.lambMoments(
          p.pointer,
          g.pointer,
          m.pointer,
          v.pointer,
          n,
          beta1,
          beta2,
          epsilon,
          decay,
          ...corrections,
          gradientScale,
          sums,
        );
        const [values, moves] = read();
        // Squares in float64 of numbers in float32.
        expectClose([values!], [before], 1e-6);
        expectClose([moves!], [way.reduce((sum, x) => sum + x * x, 0)], 1e-5);
        kernels.lambUpdate(
          p.pointer,
          m.pointer,
          v.pointer,
          n,
          rate,
          epsilon,
          decay,
          ...corrections,
        );
        way.forEach((move, i) => (wanted[i]! -= rate * move));
      }
      arena.checkGuards();
      // Each step rounds a few times at 6e-8 of values near 1.
      expectClose(p.values, wanted, 1e-6);
      expectClose(m.values, first, 1e-6);
      expectClose(v.values, second, 1e-6);
    }),
  );
});

test("squares are added to what the sums hold", () => {
  const arena = new Arena();
  const [p, g] = [arena.floats([3, 4]), arena.floats([0, 0])];
  const [m, v] = [arena.zeros(2), arena.zeros(2)];
  const sums = arena.workspace(16);
  const view = new DataView(p.values.buffer);
  view.setFloat64(sums, 100, true);
  view.setFloat64(sums + 8, 1, true);
  const { kernels } = arena;
  for (let pass = 0; pass < 2; pass++) {
    kernels.lambMoments(
      p.pointer,
      g.pointer,
      m.pointer,
      v.pointer,
      2,
      0.9,
      0.99,
      1e-8,
      1,
      1,
      1,
      1,
      sums,
    );
  }
  // Without a gradient the decay alone is the direction: of weight 1, the parameters.
  expect(view.getFloat64(sums, true)).toBe(150);
  expect(view.getFloat64(sums + 8, true)).toBe(51);
});
