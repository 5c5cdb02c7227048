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

/** Neither a scale nor its reciprocal may pass float32: numbers below 1e-36 are not scaled up further. */
const greatestScale: f32 = reinterpret<f32>(0x7e800000); // 2^126

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
      const scale: f32 = greatest > 0 ? min(largest / greatest, greatestScale) : 1;
      roundTo(x, out, n, scale, step, least, largest);
      x += (<usize>n) << 2;
      out += (<usize>n) << 2;
    }
  }
}

/** BF16 of four floats, in the lower half of each lane. */
// @ts-ignore: decorator
@inline
function halves4(x: v128): v128 {
  const upper = i32x4.shr_u(x, 16);
  const tie = i32x4.add(v128.and(upper, i32x4.splat(1)), i32x4.splat(0x7fff));
  const rounded = i32x4.shr_u(i32x4.add(x, tie), 16);
  // NaN stays NaN, though its highest bits may all be in the half that goes.
  return v128.bitselect(v128.or(upper, i32x4.splat(0x40)), rounded, f32x4.ne(x, x));
}

/** out[n] (16 bits each) = the upper half of x's bits, rounded to nearest, ties to even. */
export function toBf16(x: usize, out: usize, n: i32): void {
  const end = out + ((<usize>(n & -8)) << 1);
  for (; out < end; out += 16) {
    const low = halves4(v128.load(x));
    v128.store(out, i16x8.narrow_i32x4_u(low, halves4(v128.load(x, 16))));
    x += 32;
  }
  for (const last = out + ((<usize>(n & 7)) << 1); out < last; out += 2) {
    store<u16>(out, <u16>i32x4.extract_lane(halves4(v128.load32_zero(x)), 0));
    x += 4;
  }
}

/** out[n] = float32 of x[n] (16 bits each), apart from it. */
export function fromBf16(x: usize, out: usize, n: i32): void {
  const zero = i16x8.splat(0);
  const end = x + ((<usize>(n & -8)) << 1);
  for (; x < end; x += 16) {
    const halves = v128.load(x);
    v128.store(out, i16x8.shuffle(zero, halves, 0, 8, 1, 9, 2, 10, 3, 11));
    v128.store(out, i16x8.shuffle(zero, halves, 4, 12, 5, 13, 6, 14, 7, 15), 16);
    out += 32;
  }
  for (const last = x + ((<usize>(n & 7)) << 1); x < last; x += 2) {
    store<u32>(out, (<u32>load<u16>(x)) << 16);
    out += 4;
  }
}
