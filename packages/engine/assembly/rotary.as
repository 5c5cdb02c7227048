/**
 * Rotary position embedding (Su et al. 2021) in the half-split layout of GPT-NeoX and Llama: the
 * pair (i, i + headDim/2) of a head turns by position * base^(-2i/headDim). Angles are computed in
 * float64, four pairs at a time, once for all sequences and heads of a position.
 */

import { cosine64, exp64, log64, sine64 } from "./scalar-math";
import { loadPartial, storePartial } from "./vector-math";

/**
 * Turns, in place, the first `heads` heads of each row of x[batch * sequence, stride]; direction 1
 * forward, -1 backward (the inverse turn). Row s of a sequence has position first + s.
 */
export function rotary(
  x: usize,
  batch: i32,
  sequence: i32,
  heads: i32,
  stride: i32,
  headDim: i32,
  base: f64,
  direction: f64,
  first: i32,
): void {
  const half = headDim >> 1;
  const rowBytes = (<usize>stride) << 2;
  const decay = (-2 * log64(base)) / <f64>headDim;
  for (let pair = 0; pair < half; pair += 4) {
    const count = min(4, half - pair);
    const low = x + ((<usize>pair) << 2);
    const f0 = exp64(decay * <f64>pair);
    const f1 = exp64(decay * <f64>(pair + 1));
    const f2 = exp64(decay * <f64>(pair + 2));
    const f3 = exp64(decay * <f64>(pair + 3));
    for (let s = 0; s < sequence; s++) {
      const position = direction * <f64>(first + s);
      let cosines = f32x4.splat(<f32>cosine64(position * f0));
      cosines = f32x4.replace_lane(cosines, 1, <f32>cosine64(position * f1));
      cosines = f32x4.replace_lane(cosines, 2, <f32>cosine64(position * f2));
      cosines = f32x4.replace_lane(cosines, 3, <f32>cosine64(position * f3));
      let sines = f32x4.splat(<f32>sine64(position * f0));
      sines = f32x4.replace_lane(sines, 1, <f32>sine64(position * f1));
      sines = f32x4.replace_lane(sines, 2, <f32>sine64(position * f2));
      sines = f32x4.replace_lane(sines, 3, <f32>sine64(position * f3));
      for (let b = 0; b < batch; b++) {
        let at = low + <usize>(b * sequence + s) * rowBytes;
        if (count == 4) {
          for (let head = 0; head < heads; head++) {
            const other = at + ((<usize>half) << 2);
            const u = v128.load(at);
            const v = v128.load(other);
            v128.store(at, f32x4.sub(f32x4.mul(u, cosines), f32x4.mul(v, sines)));
            v128.store(other, f32x4.add(f32x4.mul(v, cosines), f32x4.mul(u, sines)));
            at += (<usize>headDim) << 2;
          }
        } else {
          for (let head = 0; head < heads; head++) {
            const other = at + ((<usize>half) << 2);
            const u = loadPartial(at, count);
            const v = loadPartial(other, count);
            storePartial(at, f32x4.sub(f32x4.mul(u, cosines), f32x4.mul(v, sines)), count);
            storePartial(other, f32x4.add(f32x4.mul(v, cosines), f32x4.mul(u, sines)), count);
            at += (<usize>headDim) << 2;
          }
        }
      }
    }
  }
}
