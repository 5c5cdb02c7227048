/** Bias of a linear layer: added to each row forward, column sums backward. */

import { addColumnSums } from "./rows";

/** x[rows, cols] += bias[cols]. */
export function addBias(x: usize, bias: usize, rows: i32, cols: i32): void {
  const end = (<usize>(cols & -4)) << 2;
  const last = (<usize>cols) << 2;
  for (let row = 0; row < rows; row++) {
    let at: usize = 0;
    for (; at < end; at += 16)
      v128.store(x + at, f32x4.add(v128.load(x + at), v128.load(bias + at)));
    for (; at < last; at += 4) store<f32>(x + at, load<f32>(x + at) + load<f32>(bias + at));
    x += last;
  }
}

/** dbias[cols] += the column sums of dy[rows, cols]. */
export function biasGradient(dy: usize, dbias: usize, rows: i32, cols: i32): void {
  addColumnSums(dy, dbias, rows, cols);
}
