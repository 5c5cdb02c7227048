/** AdamW (Loshchilov and Hutter 2019, algorithm 2): Adam with weight decay decoupled from the gradient. */

import { loadPartial, storePartial } from "./vector-math";

/**
 * One update of n parameters in place, with g = gradientScale * gradient:
 * m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2;
 * p -= learningRate * ((m / correction1) / (sqrt(v / correction2) + epsilon) + weightDecay * p),
 * where correction_i = 1 - beta_i^step.
 */
export function adamw(
  parameter: usize,
  gradient: usize,
  m: usize,
  v: usize,
  n: i32,
  learningRate: f64,
  beta1: f64,
  beta2: f64,
  epsilon: f64,
  weightDecay: f64,
  correction1: f64,
  correction2: f64,
  gradientScale: f64,
): void {
  // Scalars fold in float64, so that 1 - beta2 keeps its digits.
  const keep1 = f32x4.splat(<f32>beta1);
  const keep2 = f32x4.splat(<f32>beta2);
  const take1 = f32x4.splat(<f32>((1 - beta1) * gradientScale));
  const take2 = f32x4.splat(<f32>(1 - beta2));
  const scale = f32x4.splat(<f32>gradientScale);
  const rate = f32x4.splat(<f32>(learningRate / correction1));
  const root = f32x4.splat(<f32>(1 / sqrt<f64>(correction2)));
  const floor = f32x4.splat(<f32>epsilon);
  const decay = f32x4.splat(<f32>(1 - learningRate * weightDecay));

  const end = (<usize>(n & -4)) << 2;
  const tail = n & 3;
  let at: usize = 0;
  for (; at < end; at += 16) {
    const g = v128.load(gradient + at);
    const scaled = f32x4.mul(g, scale);
    const mean = f32x4.add(f32x4.mul(keep1, v128.load(m + at)), f32x4.mul(take1, g));
    const square = f32x4.add(
      f32x4.mul(keep2, v128.load(v + at)),
      f32x4.mul(take2, f32x4.mul(scaled, scaled)),
    );
    const size = f32x4.add(f32x4.mul(f32x4.sqrt(square), root), floor);
    const move = f32x4.div(f32x4.mul(rate, mean), size);
    v128.store(m + at, mean);
    v128.store(v + at, square);
    v128.store(parameter + at, f32x4.sub(f32x4.mul(decay, v128.load(parameter + at)), move));
  }
  if (tail) {
    const g = loadPartial(gradient + at, tail);
    const scaled = f32x4.mul(g, scale);
    const mean = f32x4.add(f32x4.mul(keep1, loadPartial(m + at, tail)), f32x4.mul(take1, g));
    const square = f32x4.add(
      f32x4.mul(keep2, loadPartial(v + at, tail)),
      f32x4.mul(take2, f32x4.mul(scaled, scaled)),
    );
    const size = f32x4.add(f32x4.mul(f32x4.sqrt(square), root), floor);
    const move = f32x4.div(f32x4.mul(rate, mean), size);
    storePartial(m + at, mean, tail);
    storePartial(v + at, square, tail);
    const old = f32x4.mul(decay, loadPartial(parameter + at, tail));
    storePartial(parameter + at, f32x4.sub(old, move), tail);
  }
}
