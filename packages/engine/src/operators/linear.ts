import type { Parameter, Tape, Variable } from "../tape.ts";
import { gradientOf } from "../tape.ts";
import { matrixDims } from "../tensor.ts";

/**
 * y = x·W + b for x [rows, k]. `weight` is [k, n]; with `transposed` it is [n, k] and y = x·Wᵀ, the
 * form of an output head that shares the embedding table.
 */
export function linear(
  tape: Tape,
  x: Variable,
  weight: Parameter,
  bias?: Parameter,
  transposed = false,
): Variable {
  const { kernels, pool } = tape;
  const [rows, k] = matrixDims(x.value);
  const n = weight.value.dims[transposed ? 0 : 1]!;
  const ldw = transposed ? k : n;
  const w = weight.value.pointer;
  const y = tape.variable([rows, n]);

  const space = (m: number, cols: number, depth: number): number =>
    pool.scratch(kernels.gemmWorkspace(m, cols, depth));
  const [xs, ys] = [x.value.pointer, y.value.pointer];
  kernels.gemm(false, transposed, rows, n, k, 1, xs, k, w, ldw, 0, ys, n, space(rows, n, k));
  if (bias !== undefined) kernels.addBias(ys, bias.value.pointer, rows, n);

  tape.record({
    input: () => {
      const dy = gradientOf(y).pointer;
      tape.contribute(x, (dx) => {
        kernels.gemm(false, !transposed, rows, k, n, 1, dy, n, w, ldw, 0, dx, k, space(rows, k, n));
      });
    },
    weight: () => {
      const dy = gradientOf(y).pointer;
      const dw = weight.gradient.pointer;
      if (transposed) {
        kernels.gemm(true, false, n, k, rows, 1, dy, n, xs, k, 1, dw, k, space(n, k, rows));
      } else {
        kernels.gemm(true, false, k, n, rows, 1, xs, k, dy, n, 1, dw, n, space(k, n, rows));
      }
      if (bias !== undefined) kernels.biasGradient(dy, bias.gradient.pointer, rows, n);
    },
  });
  return y;
}
