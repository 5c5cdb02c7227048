/** A low-rank addition to some columns of a product's result (Hu et al., LoRA, 2021, section 4.1). */
import { addTo } from "../tape/add-gradient.ts";
import type { Range } from "../memory/slice.ts";
import { type Parameter, type Tape, type Variable, gradientOf } from "../tape/tape.ts";
import { type Tensor, matrixDims } from "../memory/tensor.ts";

/**
 * y[:, columns] += (x·A)·B in place, in float32, for x [rows, k], A [k, rank], B [rank, columns]. y is
 * fresh: nothing has read it.
 */
export function addLowRank(
  tape: Tape,
  x: Variable,
  y: Variable,
  a: Parameter,
  b: Parameter,
  columns: Range,
): void {
  const { kernels, pool } = tape;
  const [rows, k] = matrixDims(x.value);
  const [, n] = matrixDims(y.value);
  const [rank] = matrixDims(b.value);
  const { count } = columns;
  const from = columns.start * 4;
  const space = (m: number, cols: number, depth: number): number =>
    pool.scratch(kernels.gemmWorkspace(m, cols, depth));

  const inner = tape.allocate([rows, rank]);
  const h = inner.pointer;
  const [xs, ys] = [x.value.pointer, y.value.pointer + from];
  const [down, up] = [a.value.pointer, b.value.pointer];
  kernels.gemm(0, 0, rows, rank, k, 1, xs, k, down, rank, 0, h, rank, space(rows, rank, k));
  kernels.gemm(0, 0, rows, count, rank, 1, h, rank, up, count, 1, ys, n, space(rows, count, rank));

  let gradient: Tensor | undefined;
  tape.record({
    input: () => {
      gradient = tape.allocate([rows, rank]);
      const [dh, dy] = [gradient.pointer, gradientOf(y).pointer + from];
      const [as, bs] = [a.value.pointer, b.value.pointer];
      const room = space(rows, rank, count);
      kernels.gemm(0, 1, rows, rank, count, 1, dy, n, bs, count, 0, dh, rank, room);
      tape.add(x, (dx, keep) => {
        kernels.gemm(0, 1, rows, k, rank, 1, dh, rank, as, rank, keep, dx, k, space(rows, k, rank));
      });
    },
    weight: () => {
      const [dh, dy] = [gradient!.pointer, gradientOf(y).pointer + from];
      const values = tape.valueOf(x).pointer;
      addTo(tape, a, (da) => {
        const room = space(k, rank, rows);
        kernels.gemm(1, 0, k, rank, rows, 1, values, k, dh, rank, 1, da, rank, room);
      });
      addTo(tape, b, (db) => {
        const room = space(rank, count, rows);
        kernels.gemm(1, 0, rank, count, rows, 1, h, rank, dy, n, 1, db, count, room);
      });
    },
    reads: [x],
    kept: () => [inner, gradient],
  });
}
