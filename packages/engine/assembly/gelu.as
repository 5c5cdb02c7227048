/**
 * GELU in the tanh approximation of GPT-2 (Hendrycks and Gimpel 2016, section 2):
 * x/2 (1 + tanh u) with u = sqrt(2/pi) (x + 0.044715 x^3). Written as x * sigmoid(2u), the same
 * number without the cancellation of 1 + tanh u for negative x.
 */

import { exp24, loadPartial, multiplyAdd, storePartial } from "./vector-math";

const TWICE_ROOT: f32 = 1.5957691216057308; // 2 sqrt(2/pi), of 2u
const CUBIC_SLOPE: f32 = 0.134145; // 3 * 0.044715
// -2u log2(e) = x (LINEAR + CUBIC x^2)
const LINEAR: f32 = -2.302208198; // -2 sqrt(2/pi) log2(e)
const CUBIC: f32 = -0.1029432396; // LINEAR * 0.044715

/** sigmoid(2u), given x and its square. */
// @ts-ignore: decorator
@inline
function gate4(x: v128, square: v128): v128 {
  const one = f32x4.splat(1);
  const slope = multiplyAdd(f32x4.splat(CUBIC), square, f32x4.splat(LINEAR));
  return f32x4.div(one, f32x4.add(one, exp24(f32x4.mul(x, slope))));
}

// @ts-ignore: decorator
@inline
function gelu4(x: v128): v128 {
  return f32x4.mul(x, gate4(x, f32x4.mul(x, x)));
}

/** d gelu / dx = s + x s (1 - s) d(2u)/dx, given x, its square and s = sigmoid(2u). */
// @ts-ignore: decorator
@inline
function slope4(x: v128, square: v128, s: v128): v128 {
  const one = f32x4.splat(1);
  const cubic = multiplyAdd(f32x4.splat(CUBIC_SLOPE), square, one);
  const slope = f32x4.mul(f32x4.mul(f32x4.splat(TWICE_ROOT), x), cubic);
  return multiplyAdd(f32x4.mul(s, f32x4.sub(one, s)), slope, s);
}

// @ts-ignore: decorator
@inline
function geluSlope4(x: v128): v128 {
  const square = f32x4.mul(x, x);
  return slope4(x, square, gate4(x, square));
}

/** y = gelu(x). y may be x. */
export function geluForward(x: usize, y: usize, n: i32): void {
  const end = (<usize>(n & -4)) << 2;
  let at: usize = 0;
  for (; at < end; at += 16) v128.store(y + at, gelu4(v128.load(x + at)));
  if (n & 3) storePartial(y + at, gelu4(loadPartial(x + at, n & 3)), n & 3);
}

/** dx = dy * gelu'(x). dx may be dy or x. */
export function geluBackward(x: usize, dy: usize, dx: usize, n: i32): void {
  const end = (<usize>(n & -4)) << 2;
  const tail = n & 3;
  let at: usize = 0;
  for (; at < end; at += 16) {
    v128.store(dx + at, f32x4.mul(v128.load(dy + at), geluSlope4(v128.load(x + at))));
  }
  if (tail) {
    const slope = geluSlope4(loadPartial(x + at, tail));
    storePartial(dx + at, f32x4.mul(loadPartial(dy + at, tail), slope), tail);
  }
}

/** y = gelu(x), and x = gelu'(x), which shares the exponential. */
export function geluSplit(x: usize, y: usize, n: i32): void {
  const end = (<usize>(n & -4)) << 2;
  const tail = n & 3;
  let at: usize = 0;
  for (; at < end; at += 16) {
    const value = v128.load(x + at);
    const square = f32x4.mul(value, value);
    const s = gate4(value, square);
    v128.store(y + at, f32x4.mul(value, s));
    v128.store(x + at, slope4(value, square, s));
  }
  if (tail) {
    const value = loadPartial(x + at, tail);
    storePartial(y + at, gelu4(value), tail);
    storePartial(x + at, geluSlope4(value), tail);
  }
}
