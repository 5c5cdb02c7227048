/**
 * Vector and scalar functions that the kernels share. exp is the only transcendental in an inner
 * loop: Cody and Waite's reduction to |r| <= ln(2)/2, then a polynomial of degree 6 fitted for
 * relative error (3.1e-9 in exact arithmetic, 2 ulp after rounding). The scalar ones work in
 * float64 by Taylor series, so that results do not depend on a host's libm.
 */

const LOG2E: f32 = 1.4426950408889634;
const LN2_HIGH: f32 = 0.693359375; // 9 bits of ln(2): n * LN2_HIGH is exact
const LN2_LOW: f32 = -2.12194440054690583e-4;
const ROUND: f32 = 12582912; // 1.5 * 2^23: adding it rounds to an integer, kept in the low bits

/** The lowest argument whose exponential is not flushed to zero: below it lie denormals. */
const EXP_LOW: f32 = -87;
const EXP_HIGH: f32 = 88.8;

/** exp of each lane; 0 below -87, infinity above 88.4, NaN stays NaN. */
// @ts-ignore: decorator
@inline
export function exp4(x: v128): v128 {
  const clamped = f32x4.pmin(f32x4.pmax(x, f32x4.splat(EXP_LOW)), f32x4.splat(EXP_HIGH));
  return v128.andnot(expClamped(clamped), f32x4.lt(x, f32x4.splat(EXP_LOW)));
}

/** exp of each lane without the flush to zero: for sums such as 1 + exp(x). */
// @ts-ignore: decorator
@inline
export function expPositive4(x: v128): v128 {
  return expClamped(f32x4.pmin(f32x4.pmax(x, f32x4.splat(EXP_LOW)), f32x4.splat(EXP_HIGH)));
}

// @ts-ignore: decorator
@inline
function expClamped(x: v128): v128 {
  const shifted = f32x4.add(f32x4.mul(x, f32x4.splat(LOG2E)), f32x4.splat(ROUND));
  const n = f32x4.sub(shifted, f32x4.splat(ROUND));
  let r = f32x4.sub(x, f32x4.mul(n, f32x4.splat(LN2_HIGH)));
  r = f32x4.sub(r, f32x4.mul(n, f32x4.splat(LN2_LOW)));
  let q = f32x4.splat(0.0013814261);
  q = f32x4.add(f32x4.mul(q, r), f32x4.splat(0.00836885068));
  q = f32x4.add(f32x4.mul(q, r), f32x4.splat(0.04166840017));
  q = f32x4.add(f32x4.mul(q, r), f32x4.splat(0.1666651964));
  q = f32x4.add(f32x4.mul(q, r), f32x4.splat(0.4999999404));
  const one = f32x4.splat(1);
  const p = f32x4.add(f32x4.add(f32x4.mul(f32x4.mul(r, r), q), r), one);
  // A product, not a sum of exponent bits: NaN survives, and n = 128 gives infinity.
  return f32x4.mul(p, i32x4.add(i32x4.shl(shifted, 23), one));
}

/** 1 / (1 + exp(-x)) of each lane. */
// @ts-ignore: decorator
@inline
export function sigmoid4(x: v128): v128 {
  const one = f32x4.splat(1);
  return f32x4.div(one, f32x4.add(one, expPositive4(f32x4.neg(x))));
}

/** exp of a scalar, as lane 0 of exp4: the same bits as in a vector. */
// @ts-ignore: decorator
@inline
export function exp1(x: f32): f32 {
  return f32x4.extract_lane(exp4(f32x4.splat(x)), 0);
}

/** Sum of the four lanes, in pairs. */
// @ts-ignore: decorator
@inline
export function sum4(x: v128): f32 {
  const pair = f32x4.add(x, i32x4.shuffle(x, x, 2, 3, 0, 1));
  return f32x4.extract_lane(pair, 0) + f32x4.extract_lane(pair, 1);
}

/** Greatest of the four lanes; NaN wins. */
// @ts-ignore: decorator
@inline
export function max4(x: v128): f32 {
  const pair = f32x4.max(x, i32x4.shuffle(x, x, 2, 3, 0, 1));
  return max<f32>(f32x4.extract_lane(pair, 0), f32x4.extract_lane(pair, 1));
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
