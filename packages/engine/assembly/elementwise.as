/** Element-wise kernels over n floats, sums of squares for gradient norms, and a fill. */

import { storePartial } from "./vector-math";

/** out = x + y. */
export function add(x: usize, y: usize, out: usize, n: i32): void {
  const end = (<usize>(n & -4)) << 2;
  let at: usize = 0;
  for (const wide = (<usize>(n & -16)) << 2; at < wide; at += 64) {
    v128.store(out + at, f32x4.add(v128.load(x + at), v128.load(y + at)));
    v128.store(out + at, f32x4.add(v128.load(x + at, 16), v128.load(y + at, 16)), 16);
    v128.store(out + at, f32x4.add(v128.load(x + at, 32), v128.load(y + at, 32)), 32);
    v128.store(out + at, f32x4.add(v128.load(x + at, 48), v128.load(y + at, 48)), 48);
  }
  for (; at < end; at += 16) {
    v128.store(out + at, f32x4.add(v128.load(x + at), v128.load(y + at)));
  }
  for (const last = (<usize>n) << 2; at < last; at += 4) {
    store<f32>(out + at, load<f32>(x + at) + load<f32>(y + at));
  }
}

/** out = x * y. */
export function multiply(x: usize, y: usize, out: usize, n: i32): void {
  const end = (<usize>(n & -4)) << 2;
  let at: usize = 0;
  for (; at < end; at += 16) {
    v128.store(out + at, f32x4.mul(v128.load(x + at), v128.load(y + at)));
  }
  for (const last = (<usize>n) << 2; at < last; at += 4) {
    store<f32>(out + at, load<f32>(x + at) * load<f32>(y + at));
  }
}

/** into += x. */
export function accumulate(x: usize, into: usize, n: i32): void {
  add(into, x, into, n);
}

/** out = x. */
export function copy(x: usize, out: usize, n: i32): void {
  memory.copy(out, x, (<usize>n) << 2);
}

/** Rows of `cols` floats from one matrix to another; strides are elements from row to row. */
export function copyRows(
  from: usize,
  fromStride: i32,
  to: usize,
  toStride: i32,
  rows: i32,
  cols: i32,
): void {
  const bytes = (<usize>cols) << 2;
  for (let row = 0; row < rows; row++) {
    memory.copy(to, from, bytes);
    from += (<usize>fromStride) << 2;
    to += (<usize>toStride) << 2;
  }
}

/** x *= factor. */
export function scale(x: usize, factor: f32, n: i32): void {
  const factors = f32x4.splat(factor);
  const end = (<usize>(n & -4)) << 2;
  let at: usize = 0;
  for (; at < end; at += 16) v128.store(x + at, f32x4.mul(factors, v128.load(x + at)));
  for (const last = (<usize>n) << 2; at < last; at += 4) {
    store<f32>(x + at, factor * load<f32>(x + at));
  }
}

/** x = value. */
export function fill(x: usize, value: f32, n: i32): void {
  const values = f32x4.splat(value);
  const end = (<usize>(n & -4)) << 2;
  let at: usize = 0;
  for (; at < end; at += 16) v128.store(x + at, values);
  if (n & 3) storePartial(x + at, values, n & 3);
}

/** Sum of squares in float64, in eight interleaved partial sums. */
export function sumSquares(x: usize, n: i32): f64 {
  let s0 = f64x2.splat(0);
  let s1 = f64x2.splat(0);
  let s2 = f64x2.splat(0);
  let s3 = f64x2.splat(0);
  const end = (<usize>(n & -8)) << 2;
  let at: usize = 0;
  for (; at < end; at += 32) {
    const a0 = f64x2.promote_low_f32x4(v128.load64_zero(x + at));
    const a1 = f64x2.promote_low_f32x4(v128.load64_zero(x + at, 8));
    const b0 = f64x2.promote_low_f32x4(v128.load64_zero(x + at, 16));
    const b1 = f64x2.promote_low_f32x4(v128.load64_zero(x + at, 24));
    s0 = f64x2.add(s0, f64x2.mul(a0, a0));
    s1 = f64x2.add(s1, f64x2.mul(a1, a1));
    s2 = f64x2.add(s2, f64x2.mul(b0, b0));
    s3 = f64x2.add(s3, f64x2.mul(b1, b1));
  }
  const s = f64x2.add(f64x2.add(s0, s1), f64x2.add(s2, s3));
  let sum = f64x2.extract_lane(s, 0) + f64x2.extract_lane(s, 1);
  for (const last = (<usize>n) << 2; at < last; at += 4) {
    const value = <f64>load<f32>(x + at);
    sum += value * value;
  }
  return sum;
}
