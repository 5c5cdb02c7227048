/** Sums over rows of a matrix, eight rows a pass so that the sums stay in the first-level cache. */

/** into[cols] += the column sums of x[rows, cols]. */
export function addRowSum(x: usize, into: usize, rows: i32, cols: i32): void {
  const stride = <usize>cols << 2;
  const end = <usize>(cols & -4) << 2;
  let row: i32 = 0;
  for (; row + 8 <= rows; row += 8) {
    const x1 = x + stride;
    const x2 = x1 + stride;
    const x3 = x2 + stride;
    const x4 = x + 4 * stride;
    let at: usize = 0;
    for (; at < end; at += 16) {
      const a = f32x4.add(v128.load(x + at), v128.load(x1 + at));
      const b = f32x4.add(v128.load(x2 + at), v128.load(x3 + at));
      const low = x4 + at;
      const c = f32x4.add(v128.load(low), v128.load(low + stride));
      const d = f32x4.add(v128.load(low + 2 * stride), v128.load(low + 3 * stride));
      const sum = f32x4.add(f32x4.add(a, b), f32x4.add(c, d));
      v128.store(into + at, f32x4.add(v128.load(into + at), sum));
    }
    for (; at < stride; at += 4) {
      let sum: f32 = 0;
      for (let r: usize = 0; r < 8; r++) sum += load<f32>(x + r * stride + at);
      store<f32>(into + at, load<f32>(into + at) + sum);
    }
    x += 8 * stride;
  }
  for (; row < rows; row++) {
    let at: usize = 0;
    for (; at < end; at += 16) v128.store(into + at, f32x4.add(v128.load(into + at), v128.load(x + at)));
    for (; at < stride; at += 4) store<f32>(into + at, load<f32>(into + at) + load<f32>(x + at));
    x += stride;
  }
}
