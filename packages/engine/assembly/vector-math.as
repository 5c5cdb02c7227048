/**
 * Vector functions that the kernels share. Exponentials split their argument into an integer, which
 * becomes exponent bits, and a rest that a polynomial takes. `exp4` (Cody and Waite's reduction,
 * degree 6) is within 5e-7 of its value everywhere; the powers of two (degree 5) serve sums of
 * exponentials, whose callers scale the argument by log2(e) and where only differences near 0 count.
 * Polynomials are fitted for least relative error: 3.1e-9 and 9.2e-8 before rounding.
 */

export const LOG2E: f32 = 1.4426950408889634;
const LN2_HIGH: f32 = 0.693359375; // 9 bits of ln(2): n * LN2_HIGH is exact
const LN2_LOW: f32 = -2.12194440054690583e-4;
const ROUND: f32 = 12582912; // 1.5 * 2^23: adding it rounds to an integer, kept in the low bits

/** x y + sum: rounded twice, or, in the fused module, once where the processor does that. */
// @ts-ignore: decorator
@inline
export function multiplyAdd(x: v128, y: v128, sum: v128): v128 {
  if (ASC_FEATURE_RELAXED_SIMD) return f32x4.relaxed_madd(x, y, sum);
  return f32x4.add(sum, f32x4.mul(x, y));
}

/** exp of each lane, held between 2^-126 and infinity; NaN stays NaN. */
// @ts-ignore: decorator
@inline
export function exp4(x: v128): v128 {
  const held = f32x4.pmin(f32x4.pmax(x, f32x4.splat(-87)), f32x4.splat(88.8));
  const shifted = multiplyAdd(held, f32x4.splat(LOG2E), f32x4.splat(ROUND));
  const n = f32x4.sub(shifted, f32x4.splat(ROUND));
  let r = multiplyAdd(n, f32x4.splat(-LN2_HIGH), held);
  r = multiplyAdd(n, f32x4.splat(-LN2_LOW), r);
  let q = f32x4.splat(0.0013814261);
  q = multiplyAdd(q, r, f32x4.splat(0.00836885068));
  q = multiplyAdd(q, r, f32x4.splat(0.04166840017));
  q = multiplyAdd(q, r, f32x4.splat(0.1666651964));
  q = multiplyAdd(q, r, f32x4.splat(0.4999999404));
  const p = f32x4.add(multiplyAdd(f32x4.mul(r, r), q, r), f32x4.splat(1));
  return f32x4.mul(p, powerOfTwo(shifted));
}

/** 2^t of each lane for t below 128; 0 below -100, where a term no longer counts; NaN stays NaN. */
// @ts-ignore: decorator
@inline
export function exp2Term4(t: v128): v128 {
  return v128.andnot(exp2Free(t), f32x4.lt(t, f32x4.splat(-100)));
}

/** 2^t of each lane, held between 2^-126 and infinity; NaN stays NaN. */
// @ts-ignore: decorator
@inline
export function exp24(t: v128): v128 {
  return exp2Free(f32x4.pmin(f32x4.pmax(t, f32x4.splat(-126)), f32x4.splat(128)));
}

// @ts-ignore: decorator
@inline
function exp2Free(t: v128): v128 {
  const shifted = f32x4.add(t, f32x4.splat(ROUND));
  const r = f32x4.sub(t, f32x4.sub(shifted, f32x4.splat(ROUND)));
  let q = f32x4.splat(0.0013264528);
  q = multiplyAdd(q, r, f32x4.splat(0.00967161916));
  q = multiplyAdd(q, r, f32x4.splat(0.0555073507));
  q = multiplyAdd(q, r, f32x4.splat(0.2402224094));
  q = multiplyAdd(q, r, f32x4.splat(0.69314700365));
  const p = multiplyAdd(q, r, f32x4.splat(1));
  return f32x4.mul(p, powerOfTwo(shifted));
}

/** 2^n from ROUND + n. A factor, not a sum of exponent bits: NaN survives, and n = 128 is infinity. */
// @ts-ignore: decorator
@inline
function powerOfTwo(shifted: v128): v128 {
  return i32x4.add(i32x4.shl(shifted, 23), f32x4.splat(1));
}

/** Sum of the four lanes, in pairs. */
// @ts-ignore: decorator
@inline
export function sum4(x: v128): f32 {
  const pair = f32x4.add(x, i32x4.shuffle(x, x, 2, 3, 0, 1));
  return f32x4.extract_lane(pair, 0) + f32x4.extract_lane(pair, 1);
}

/** Greatest of the four lanes; a NaN may pass unseen. */
// @ts-ignore: decorator
@inline
export function max4(x: v128): f32 {
  const pair = f32x4.pmax(x, i32x4.shuffle(x, x, 2, 3, 0, 1));
  const one = f32x4.pmax(pair, i32x4.shuffle(pair, pair, 1, 0, 3, 2));
  return f32x4.extract_lane(one, 0);
}

/** A lane mask with the first `count` of four lanes set. */
// @ts-ignore: decorator
@inline
export function firstLanes(count: i32): v128 {
  return i32x4.gt_s(i32x4.splat(count), i32x4(0, 1, 2, 3));
}

/** Loads the first `count` (1 to 3) floats at `pointer`, the other lanes 0; reads no byte beyond. */
export function loadPartial(pointer: usize, count: i32): v128 {
  let x = v128.load32_zero(pointer);
  if (count > 1) x = f32x4.replace_lane(x, 1, load<f32>(pointer, 4));
  if (count > 2) x = f32x4.replace_lane(x, 2, load<f32>(pointer, 8));
  return x;
}

/** Stores the first `count` (1 to 3) lanes at `pointer`. */
export function storePartial(pointer: usize, x: v128, count: i32): void {
  store<f32>(pointer, f32x4.extract_lane(x, 0));
  if (count > 1) store<f32>(pointer, f32x4.extract_lane(x, 1), 4);
  if (count > 2) store<f32>(pointer, f32x4.extract_lane(x, 2), 8);
}
