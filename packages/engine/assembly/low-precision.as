/**
 * Numbers of fewer bits, in place of float32: BF16, and FP8 as E4M3 or E5M2 (Micikevicius et al.,
 * FP8 Formats for Deep Learning, 2022). Rounding is to nearest, ties to even; what is too large is
 * brought to the largest number, what is too small falls on the even steps of the least exponent.
 */

import { loadPartial, max4, storePartial } from "./vector-math";

/** Greatest |x| of n floats; 0 for none. */
export function absMax(x: usize, n: i32): f32 {
  let greatest = f32x4.splat(0);
  const end = (<usize>(n & -4)) << 2;
  let at: usize = 0;
  for (; at < end; at += 16) greatest = f32x4.pmax(greatest, f32x4.abs(v128.load(x + at)));
  if (n & 3) greatest = f32x4.pmax(greatest, f32x4.abs(loadPartial(x + at, n & 3)));
  return max4(greatest);
}

// @ts-ignore: decorator
@inline
function round4(x: v128, step: v128, least: v128, largest: v128): v128 {
  // The power of two at or below |x| is its exponent's bits alone; a step of its last digit is 2^-m of it.
  const power = f32x4.max(v128.and(x, i32x4.splat(0x7f800000)), least);
  const unit = f32x4.mul(power, step);
  const rounded = f32x4.mul(f32x4.nearest(f32x4.div(x, unit)), unit);
  return f32x4.max(f32x4.min(rounded, largest), f32x4.neg(largest));
}

/**
 * out[n] = round(x * scale) / scale, to numbers whose last digit is `step` of their power of two, with
 * `least` the smallest power and `largest` the largest number. out may be x.
 */
export function roundTo(
  x: usize,
  out: usize,
  n: i32,
  scale: f32,
  step: f32,
  least: f32,
  largest: f32,
): void {
  const scales = f32x4.splat(scale);
  const back = f32x4.splat(<f32>1 / scale);
  const steps = f32x4.splat(step);
  const leasts = f32x4.splat(least);
  const largests = f32x4.splat(largest);
  const end = (<usize>(n & -4)) << 2;
  let at: usize = 0;
  for (; at < end; at += 16) {
    const y = round4(f32x4.mul(v128.load(x + at), scales), steps, leasts, largests);
    v128.store(out + at, f32x4.mul(y, back));
  }
  const tail = n & 3;
  if (tail) {
    const y = round4(f32x4.mul(loadPartial(x + at, tail), scales), steps, leasts, largests);
    storePartial(out + at, f32x4.mul(y, back), tail);
  }
}

/** The same for each block of up to `block` numbers of a row, scaled so that its greatest is `largest`. */
export function roundBlocksTo(
  x: usize,
  out: usize,
  rows: i32,
  cols: i32,
  block: i32,
  step: f32,
  least: f32,
  largest: f32,
): void {
  for (let row = 0; row < rows; row++) {
    for (let start = 0; start < cols; start += block) {
      const n = min(block, cols - start);
      const greatest = absMax(x, n);
      const scale: f32 = greatest > 0 ? largest / greatest : 1;
      roundTo(x, out, n, scale, step, least, largest);
      x += (<usize>n) << 2;
      out += (<usize>n) << 2;
    }
  }
}

/** out[n] (16 bits each) = the upper half of x's bits, rounded to nearest, ties to even. */
export function toBf16(x: usize, out: usize, n: i32): void {
  for (let i = 0; i < n; i++) {
    const bits = load<u32>(x);
    const isNaN = (bits & 0x7fffffff) > 0x7f800000;
    const rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    store<u16>(out, <u16>(isNaN ? (bits >> 16) | 0x40 : rounded));
    x += 4;
    out += 2;
  }
}

/** out[n] = float32 of x[n] (16 bits each); `out` lies behind x or apart. */
export function fromBf16(x: usize, out: usize, n: i32): void {
  for (let i = 0; i < n; i++) {
    store<u32>(out, (<u32>load<u16>(x)) << 16);
    x += 2;
    out += 4;
  }
}
