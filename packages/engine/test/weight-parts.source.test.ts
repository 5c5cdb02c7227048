import { createRng } from "@trireme/core";
import { expect, test } from "vitest";
import {
  allocateGradients,
  changeGradients,
  clearGradients,
} from "../src/memory/gradient-block.ts";
import { createKernels } from "../src/kernels/kernels.ts";
import { linear } from "../src/operators/linear.ts";
import { Pool } from "../src/memory/pool.ts";
import { createRankMemory } from "../src/memory/rank-memory.ts";
import { type Parameter, Tape, type Variable, gradientOf } from "../src/tape/tape.ts";
import { type Tensor, view } from "../src/memory/tensor.ts";

/** Rows of a weight and its width: more than are written out at a time. */
const [height, width, rows] = [601, 1000, 3];

/** y, dx and dW of a product, by a weight in float32 or the same in BF16, with gradients in BF16. */
function product(transposed: boolean, isHalf: boolean): readonly Float32Array[] {
  const { memory, base } = createRankMemory();
  const [pool, kernels, rng] = [new Pool(memory, base), createKernels(memory), createRng(3)];
  const random = (dims: readonly number[]): Tensor => {
    const tensor = pool.allocate(dims);
    const values = view(memory, tensor);
    values.forEach((_, i) => (values[i] = rng.normal()));
    return tensor;
  };
  const value = random([height, width]);
  const half = pool.allocateBytes(value.size * 2);
  kernels.toBf16(value.pointer, half, value.size);
  kernels.fromBf16(half, value.pointer, value.size);
  const gradient = allocateGradients(pool, value.size, isHalf ? 2 : 4);
  clearGradients(kernels, gradient);
  const unpackRows = (out: number, first: number, count: number): void =>
    kernels.fromBf16(half + first * width * 2, out, count * width);
  const unpack = (): never => {
    throw new Error("the whole matrix is not to be written out");
  };
  const packed = { turned: false, unpack, unpackRows };
  const weight: Parameter = {
    name: "w",
    dims: value.dims,
    value,
    gradient,
    ...(isHalf && { packed }),
  };
  const [k, n] = transposed ? [width, height] : [height, width];
  const x: Variable = { value: random([rows, k]), needsGradient: true, gradient: undefined };
  const tape = new Tape(kernels, pool);
  const y = linear(tape, x, weight, { transposed });
  y.gradient = random([rows, n]);
  tape.backward();
  const results = [view(memory, y.value).slice(), view(memory, gradientOf(x)).slice()];
  changeGradients({ pool, kernels }, gradient, (pointer) => {
    results.push(new Float32Array(memory.buffer, pointer, value.size).slice());
  });
  return results;
}

test.each([true, false])(
  "a weight in BF16 is written out by parts, transposed %s, and its gradient too",
  (transposed) => {
    const [whole, parts] = [product(transposed, false), product(transposed, true)];
    whole.forEach((values, i) => {
      const most = values.reduce((a, b) => Math.max(a, Math.abs(b)), 0);
      // Sums in another order; gradients are rounded to 8 bits.
      const bound = i === 2 ? 2 ** -8 : 1e-5;
      const worst = values.reduce((a, b, j) => Math.max(a, Math.abs(b - parts[i]![j]!)), 0);
      expect(worst / most).toBeLessThan(bound);
    });
  },
);
