/** Sums along and across the rows of a matrix. Two partial sums hide the latency of additions. */

import { firstLanes, loadPartial, sum4 } from "./vector-math";

/** Sum of n floats. */
export function sumRow(x: usize, n: i32): f32 {
  let even = f32x4.splat(0);
  let odd = f32x4.splat(0);
  let at: usize = 0;
  for (const end = (<usize>(n & -8)) << 2; at < end; at += 32) {
    even = f32x4.add(even, v128.load(x + at));
    odd = f32x4.add(odd, v128.load(x + at, 16));
  }
  if (n & 4) {
    even = f32x4.add(even, v128.load(x + at));
    at += 16;
  }
  if (n & 3) odd = f32x4.add(odd, loadPartial(x + at, n & 3));
  return sum4(f32x4.add(even, odd));
}

/** Sum of (x - centre)^2 over n floats. */
export function sumSquaresAbout(x: usize, centre: f32, n: i32): f32 {
  const centres = f32x4.splat(centre);
  let even = f32x4.splat(0);
  let odd = f32x4.splat(0);
  let at: usize = 0;
  for (const end = (<usize>(n & -8)) << 2; at < end; at += 32) {
    const a = f32x4.sub(v128.load(x + at), centres);
    const b = f32x4.sub(v128.load(x + at, 16), centres);
    even = f32x4.add(even, f32x4.mul(a, a));
    odd = f32x4.add(odd, f32x4.mul(b, b));
  }
  if (n & 4) {
    const a = f32x4.sub(v128.load(x + at), centres);
    even = f32x4.add(even, f32x4.mul(a, a));
    at += 16;
  }
  if (n & 3) {
    const a = v128.and(f32x4.sub(loadPartial(x + at, n & 3), centres), firstLanes(n & 3));
    odd = f32x4.add(odd, f32x4.mul(a, a));
  }
  return sum4(f32x4.add(even, odd));
}

/** into[cols] += the column sums of x[rows, cols], eight rows a pass. */
export function addColumnSums(x: usize, into: usize, rows: i32, cols: i32): void {
  const stride = (<usize>cols) << 2;
  const end = (<usize>(cols & -4)) << 2;
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
    for (; at < end; at += 16) {
      v128.store(into + at, f32x4.add(v128.load(into + at), v128.load(x + at)));
    }
    for (; at < stride; at += 4) store<f32>(into + at, load<f32>(into + at) + load<f32>(x + at));
    x += stride;
  }
}

/** Inner product of n floats. */
export function dot(x: usize, y: usize, n: i32): f32 {
  let sums = f32x4.splat(0);
  const end = (<usize>(n & -4)) << 2;
  let at: usize = 0;
  for (; at < end; at += 16)
    sums = f32x4.add(sums, f32x4.mul(v128.load(x + at), v128.load(y + at)));
  const tail = n & 3;
  if (tail) sums = f32x4.add(sums, f32x4.mul(loadPartial(x + at, tail), loadPartial(y + at, tail)));
  return sum4(sums);
}
