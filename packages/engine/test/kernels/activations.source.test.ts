import { expect, test } from "vitest";
import { Arena, dot, expectClose, numericGradient } from "./arena.ts";

const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));
const gelu = (x: number): number =>
  0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));
/** The same function without the cancellation of 1 + tanh, so that it can be a relative yardstick. */
const geluExact = (x: number): number =>
  x * sigmoid(2 * Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3));

function grid(from: number, to: number, n: number): Float32Array {
  return Float32Array.from({ length: n }, (_, i) => from + ((to - from) * i) / (n - 1));
}

test("GELU is within 1e-6 of float64, relative down to x = -2.5", () => {
  const arena = new Arena();
  const x = arena.floats(grid(-40, 40, 400_003));
  const y = arena.unset(x.values.length);
  arena.kernels.geluForward(x.pointer, y.pointer, x.values.length);
  arena.checkGuards();
  let [near, far] = [0, 0];
  x.values.forEach((value, i) => {
    const wanted = geluExact(value);
    const error = Math.abs(y.values[i]! - wanted);
    if (value > -2.5) near = Math.max(near, value === 0 ? error : error / Math.abs(wanted));
    else far = Math.max(far, error);
  });
  expect(near).toBeLessThanOrEqual(1e-6);
  expect(far).toBeLessThanOrEqual(2e-8);
});

test("GELU's gradient is its slope by finite differences", () => {
  const arena = new Arena();
  const x = arena.floats(grid(-9, 9, 2001));
  const dy = arena.normal(x.values.length);
  const dx = arena.unset(x.values.length);
  arena.kernels.geluBackward(x.pointer, dy.pointer, dx.pointer, x.values.length);
  arena.checkGuards();
  const h = 1e-5;
  const wanted = Array.from(
    x.values,
    (v, i) => ((gelu(v + h) - gelu(v - h)) / (2 * h)) * dy.values[i]!,
  );
  expectClose(dx.values, wanted, 1e-6);
});

test.each([0, 1, 3, 4, 6, 37])("GELU of %i values splits into value and slope", (n) => {
  const arena = new Arena();
  const x = arena.normal(n);
  const [slope, ones] = [arena.floats(x.values), arena.floats(new Float32Array(n).fill(1))];
  const [y, split, dx] = [arena.unset(n), arena.unset(n), arena.unset(n)];
  arena.kernels.geluForward(x.pointer, y.pointer, n);
  arena.kernels.geluBackward(x.pointer, ones.pointer, dx.pointer, n);
  arena.kernels.geluSplit(slope.pointer, split.pointer, n);
  arena.checkGuards();
  expect([...split.values]).toEqual([...y.values]);
  expect([...slope.values]).toEqual([...dx.values]);
});

test.each([0, 1, 2, 3, 4, 7])("GELU of %i values touches no other", (n) => {
  const arena = new Arena();
  const [x, dy] = [arena.normal(n), arena.normal(n)];
  const [y, dx] = [arena.unset(n), arena.unset(n)];
  arena.kernels.geluForward(x.pointer, y.pointer, n);
  arena.kernels.geluBackward(x.pointer, dy.pointer, dx.pointer, n);
  arena.checkGuards();
  expectClose(y.values, x.values.map(gelu), 1e-6);
});

test.each([1, 3, 4, 6, 16, 37])(
  "SwiGLU of width %i and its gradient agree with float64",
  (width) => {
    const arena = new Arena();
    const rows = 5;
    const gateUp = arena.normal(rows * 2 * width, 3);
    const dy = arena.normal(rows * width);
    const [y, dGateUp] = [arena.unset(rows * width), arena.unset(rows * 2 * width)];
    arena.kernels.swigluForward(gateUp.pointer, y.pointer, rows, width);
    arena.kernels.swigluBackward(gateUp.pointer, dy.pointer, dGateUp.pointer, rows, width);
    arena.checkGuards();
    const reference = (x: ArrayLike<number>): Float64Array =>
      Float64Array.from({ length: rows * width }, (_, i) => {
        const at = Math.floor(i / width) * 2 * width + (i % width);
        return x[at]! * sigmoid(x[at]!) * x[at + width]!;
      });
    expectClose(y.values, reference(gateUp.values), 1e-6);
    const wanted = numericGradient((x) => dot(reference(x), dy.values), gateUp.values);
    expectClose(dGateUp.values, wanted, 1e-6);
  },
);

test("SiLU, and so the exponential, is within 5e-7 of float64 relative to its value", () => {
  const arena = new Arena();
  const x = grid(-80, 80, 50_001);
  const gateUp = arena.floats(
    Float32Array.from({ length: 2 * x.length }, (_, i) => (i % 2 ? 1 : x[i / 2]!)),
  );
  const y = arena.unset(x.length);
  arena.kernels.swigluForward(gateUp.pointer, y.pointer, x.length, 1);
  let worst = 0;
  x.forEach((v, i) => {
    const wanted = v * sigmoid(v);
    if (v !== 0) worst = Math.max(worst, Math.abs(y.values[i]! / wanted - 1));
  });
  expect(worst).toBeLessThanOrEqual(5e-7);
});

test("NaN stays NaN, infinities have their limits", () => {
  const arena = new Arena();
  const x = arena.floats([NaN, Infinity, -Infinity, 1e30, -1e30, 0, -0]);
  const y = arena.unset(7);
  arena.kernels.geluForward(x.pointer, y.pointer, 7);
  expect(Array.from(y.values)).toEqual([NaN, Infinity, NaN, Math.fround(1e30), -0, 0, -0]);
});
