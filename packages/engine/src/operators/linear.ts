import { addTo, addToRows } from "../tape/add-gradient.ts";
import { lendRows, lendValues } from "../tape/lend-values.ts";
import type { OperandRole } from "../tape/product-format.ts";
import type { Products } from "../tape/products.ts";
import { restOf } from "../memory/resting-tensor.ts";
import { type Parameter, type Tape, type Variable, gradientOf } from "../tape/tape.ts";
import type { BehindProducts } from "./tensor-parallel.ts";
import { type Tensor, elements, matrixDims } from "../memory/tensor.ts";

/** How a product is made. */
export interface LinearOptions {
  readonly bias?: Parameter | undefined;
  /** The weight is [n, k], the form of an output head that shares the embedding table. */
  readonly transposed?: boolean;
  /**
   * Takes the weight's gradient in the first half of backward: what is kept for a second one, the
   * gradient of the result, is too large (an output head's, over the vocabulary).
   */
  readonly atOnce?: boolean;
  /** In float32, whatever the tape's products are in: routers and the output head. */
  readonly exact?: boolean;
  /**
   * Of an input that tensor-parallel ranks share, and of which no other operation has been recorded:
   * what is started behind the products of a backward that makes both gradients.
   */
  readonly behind?: BehindProducts | undefined;
}

/**
 * y = x·W + b for x [rows, k] and W [k, n]; with `transposed` W is [n, k] and y = x·Wᵀ, as is a
 * frozen W in fewer bits. A W that is kept in fewer bits is written out for each
 * product, in BF16 a part of it after another.
 */
export function linear(
  tape: Tape,
  x: Variable,
  weight: Parameter,
  { bias, exact = false, atOnce = false, behind, ...options }: LinearOptions = {},
): Variable {
  const { kernels, pool } = tape;
  const [rows, k] = matrixDims(x.value);
  const { dims, packed } = weight;
  const transposed = options.transposed === true || packed?.turned === true;
  const n = dims[transposed ? 0 : 1]!;
  const { format, watch }: Products = exact ? {} : tape.products;
  const y = tape.variable([rows, n]);

  const space = (m: number, cols: number, depth: number): number =>
    pool.scratch(kernels.gemmWorkspace(m, cols, depth));
  /** Lends the operand in the format of the products. */
  const rounded = <T>(operand: Tensor, role: OperandRole, use: (pointer: number) => T): T => {
    if (format === undefined) return use(operand.pointer);
    if (format.roundsInPlace && role !== "weight") {
      // Activations are of that format all over.
      format.round(kernels, operand, operand.pointer, weight.name, role);
      return use(operand.pointer);
    }
    const copy = pool.allocate(operand.dims);
    format.round(kernels, operand, copy.pointer, weight.name, role);
    const result = use(copy.pointer);
    pool.free(copy);
    return result;
  };
  /** Lends the weight, in float32 before it is rounded: all of it, or by parts of whole rows as it lies. */
  const lent = (use: (w: number, first: number, count: number) => void): void => {
    const height = transposed ? n : k;
    if (packed === undefined) {
      rounded(weight.value, "weight", (w) => use(w, 0, height));
      return;
    }
    const { unpackRows } = packed;
    // Working weights are of the products' format.
    if (unpackRows !== undefined && (format === undefined || format.roundsInPlace)) {
      lendRows(pool, dims, unpackRows, use);
      return;
    }
    lendValues(pool, weight, (pointer) => {
      const values = { pointer, dims, size: elements(dims) };
      rounded(values, "weight", (w) => use(w, 0, height));
    });
  };
  rounded(x.value, "input", (xs) => {
    const ys = y.value.pointer;
    lent((w, first, count) => {
      if (transposed) {
        const [to, room] = [ys + first * 4, space(rows, count, k)];
        kernels.gemm(0, 1, rows, count, k, 1, xs, k, w, k, 0, to, n, room);
      } else {
        const [from, room] = [xs + first * 4, space(rows, n, count)];
        kernels.gemm(0, 0, rows, n, count, 1, from, k, w, n, first > 0 ? 1 : 0, ys, n, room);
      }
    });
  });
  const shape = { m: rows, k, n };
  // The checksums are those of float32 operands.
  const isPlain = !transposed && format === undefined && packed === undefined;
  const plain = isPlain ? weight.value : undefined;
  watch?.product({ weight: weight.name, x: x.value, w: plain, y: y.value, shape });
  if (bias !== undefined) kernels.addBias(y.value.pointer, bias.value.pointer, rows, n);
  format?.roundResult(kernels, y.value);

  const backward = {
    input: (): void => {
      rounded(gradientOf(y), "gradient", (dy) => {
        tape.add(x, (dx, keep) => {
          lent((w, first, count) => {
            if (transposed) {
              const [from, room] = [dy + first * 4, space(rows, k, count)];
              const adds = first > 0 ? 1 : keep;
              kernels.gemm(0, 0, rows, k, count, 1, from, n, w, k, adds, dx, k, room);
            } else {
              const [to, room] = [dx + first * 4, space(rows, count, n)];
              kernels.gemm(0, 1, rows, count, n, 1, dy, n, w, n, keep, to, k, room);
            }
          });
        });
      });
    },
    weight: (): void => {
      if (weight.frozen === true) return;
      rounded(tape.valueOf(x), "input", (xs) => {
        rounded(gradientOf(y), "gradient", (dy) => {
          const [left, right, width] = transposed ? [dy, xs, k] : [xs, dy, n];
          const height = transposed ? n : k;
          addToRows(tape, weight, width, (dw, first, m) => {
            const [a, room] = [left + first * 4, space(m, width, rows)];
            kernels.gemm(1, 0, m, width, rows, 1, a, height, right, width, 1, dw, width, room);
          });
        });
      });
      if (bias !== undefined) {
        const dy = gradientOf(y).pointer;
        addTo(tape, bias, (gradient) => kernels.biasGradient(dy, gradient, rows, n));
      }
    },
  };
  /** The input need not be there beside its gradient. */
  const rest = (): void => {
    if (!atOnce) restOf(x.value);
  };
  const both = (): void => {
    if (behind === undefined || weight.frozen === true) {
      backward.weight();
      rest();
      backward.input();
      return;
    }
    behind.gather();
    backward.input();
    tape.valueOf(x);
    behind.reduce();
    backward.weight();
    rest();
  };
  if (atOnce) {
    tape.record({ input: both, spent: () => [y.value, y.gradient] });
  } else {
    const reads = weight.frozen === true ? [] : [x];
    tape.record({ ...backward, both, reads, spent: () => [y.value], kept: () => [y.gradient] });
  }
  return y;
}
