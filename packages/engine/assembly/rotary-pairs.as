/**
 * Rotary position embedding (Su et al. 2021) of neighbours, the layout of DeepSeek's weights: the pair
 * (2i, 2i + 1) of what is turned of a head turns by position * base^(-2i/width). Angles are computed in
 * float64, two pairs at a time, once for all sequences and heads of a position.
 */

import { cosine64, exp64, log64, sine64 } from "./scalar-math";
import { loadPartial, storePartial } from "./vector-math";

/**
 * Turns, in place, `width` elements of each of `heads` heads, which begin `headStride` elements apart,
 * of each row of x[batch * sequence, stride]; direction 1 forward, -1 backward (the inverse turn). Row s
 * of a sequence has position first + s.
 */
export function rotaryPairs(
  x: usize,
  batch: i32,
  sequence: i32,
  heads: i32,
  stride: i32,
  headStride: i32,
  width: i32,
  base: f64,
  direction: f64,
  first: i32,
): void {
  const rowBytes = (<usize>stride) << 2;
  const headBytes = (<usize>headStride) << 2;
  const decay = -log64(base) / <f64>width;
  for (let column = 0; column < width; column += 4) {
    const count = min(4, width - column);
    const f0 = exp64(decay * <f64>column);
    const f1 = exp64(decay * <f64>(column + 2));
    for (let s = 0; s < sequence; s++) {
      const position = direction * <f64>(first + s);
      const c0 = <f32>cosine64(position * f0);
      const c1 = <f32>cosine64(position * f1);
      const s0 = <f32>sine64(position * f0);
      const s1 = <f32>sine64(position * f1);
      const cosines = f32x4.replace_lane(f32x4.replace_lane(f32x4.splat(c0), 2, c1), 3, c1);
      let sines = f32x4.replace_lane(f32x4.splat(s0), 0, -s0);
      sines = f32x4.replace_lane(f32x4.replace_lane(sines, 2, -s1), 3, s1);
      for (let b = 0; b < batch; b++) {
        let at = x + <usize>(b * sequence + s) * rowBytes + ((<usize>column) << 2);
        for (let head = 0; head < heads; head++) {
          const u = count == 4 ? v128.load(at) : loadPartial(at, count);
          const swapped = i32x4.shuffle(u, u, 1, 0, 3, 2);
          const turned = f32x4.add(f32x4.mul(u, cosines), f32x4.mul(swapped, sines));
          if (count == 4) v128.store(at, turned);
          else storePartial(at, turned, count);
          at += headBytes;
        }
      }
    }
  }
}
