/**
 * LAMB (You et al. 2020, algorithm 2): Adam's direction, with decay, moves a tensor as far as its own norm
 * says. Needs two passes, for the norms of a whole tensor may lie on several ranks; what the first
 * would hand to the second is computed again from the moments, in the same bits.
 */

import { loadPartial, multiplyAdd, storePartial } from "./vector-math";

/** (m / correction1) / (sqrt(v / correction2) + epsilon) + weightDecay * p. */
// @ts-ignore: decorator
@inline
function direction(p: v128, m: v128, v: v128, rate: v128, root: v128, floor: v128, decay: v128): v128 {
  const size = f32x4.add(f32x4.mul(f32x4.sqrt(v), root), floor);
  return f32x4.add(f32x4.div(f32x4.mul(rate, m), size), f32x4.mul(decay, p));
}

/** Sum of the squares of the lanes, in two halves, in float64. */
// @ts-ignore: decorator
@inline
function squares(x: v128): v128 {
  const low = f64x2.promote_low_f32x4(x);
  const high = f64x2.promote_low_f32x4(i64x2.shuffle(x, x, 1, 1));
  return f64x2.add(f64x2.mul(low, low), f64x2.mul(high, high));
}

/**
 * The first pass over n parameters, with g = gradientScale * gradient: m = beta1 m + (1 - beta1) g and
 * v = beta2 v + (1 - beta2) g^2; adds the squares of the parameters and of their direction to
 * sums[2], in float64.
 */
export function lambMoments(
  parameter: usize,
  gradient: usize,
  m: usize,
  v: usize,
  n: i32,
  beta1: f64,
  beta2: f64,
  epsilon: f64,
  weightDecay: f64,
  correction1: f64,
  correction2: f64,
  gradientScale: f64,
  sums: usize,
): void {
  const keep1 = f32x4.splat(<f32>beta1);
  const keep2 = f32x4.splat(<f32>beta2);
  const take1 = f32x4.splat(<f32>((1 - beta1) * gradientScale));
  const take2 = f32x4.splat(<f32>(1 - beta2));
  const scale = f32x4.splat(<f32>gradientScale);
  const rate = f32x4.splat(<f32>(1 / correction1));
  const root = f32x4.splat(<f32>(1 / sqrt<f64>(correction2)));
  const floor = f32x4.splat(<f32>epsilon);
  const decay = f32x4.splat(<f32>weightDecay);
  let values = f64x2.splat(0);
  let moves = f64x2.splat(0);
  const end = (<usize>n) << 2;
  for (let at: usize = 0; at < end; at += 16) {
    const left = <i32>((end - at) >> 2);
    const whole = left >= 4;
    const g = whole ? v128.load(gradient + at) : loadPartial(gradient + at, left);
    const p = whole ? v128.load(parameter + at) : loadPartial(parameter + at, left);
    const oldMean = whole ? v128.load(m + at) : loadPartial(m + at, left);
    const oldSquare = whole ? v128.load(v + at) : loadPartial(v + at, left);
    const scaled = f32x4.mul(g, scale);
    const mean = multiplyAdd(keep1, oldMean, f32x4.mul(take1, g));
    const square = multiplyAdd(keep2, oldSquare, f32x4.mul(take2, f32x4.mul(scaled, scaled)));
    if (whole) {
      v128.store(m + at, mean);
      v128.store(v + at, square);
    } else {
      storePartial(m + at, mean, left);
      storePartial(v + at, square, left);
    }
    // Missing lanes are 0, and so is their direction.
    values = f64x2.add(values, squares(p));
    moves = f64x2.add(moves, squares(direction(p, mean, square, rate, root, floor, decay)));
  }
  const value = f64x2.extract_lane(values, 0) + f64x2.extract_lane(values, 1);
  const move = f64x2.extract_lane(moves, 0) + f64x2.extract_lane(moves, 1);
  store<f64>(sums, load<f64>(sums) + value);
  store<f64>(sums, load<f64>(sums, 8) + move, 8);
}

/** The second pass: p -= rate * direction, where `rate` is the learning rate times the trust ratio. */
export function lambUpdate(
  parameter: usize,
  m: usize,
  v: usize,
  n: i32,
  rate: f64,
  epsilon: f64,
  weightDecay: f64,
  correction1: f64,
  correction2: f64,
): void {
  const step = f32x4.splat(<f32>rate);
  const first = f32x4.splat(<f32>(1 / correction1));
  const root = f32x4.splat(<f32>(1 / sqrt<f64>(correction2)));
  const floor = f32x4.splat(<f32>epsilon);
  const decay = f32x4.splat(<f32>weightDecay);
  const end = (<usize>n) << 2;
  for (let at: usize = 0; at < end; at += 16) {
    const left = <i32>((end - at) >> 2);
    if (left >= 4) {
      const p = v128.load(parameter + at);
      const way = direction(p, v128.load(m + at), v128.load(v + at), first, root, floor, decay);
      v128.store(parameter + at, f32x4.sub(p, f32x4.mul(step, way)));
    } else {
      const p = loadPartial(parameter + at, left);
      const mean = loadPartial(m + at, left);
      const square = loadPartial(v + at, left);
      const way = direction(p, mean, square, first, root, floor, decay);
      storePartial(parameter + at, f32x4.sub(p, f32x4.mul(step, way)), left);
    }
  }
}
