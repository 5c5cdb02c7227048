/** Root-mean-square normalisation (Zhang and Sennrich 2019): y = x * rstd * gain, no mean, no bias. */

import { sumSquaresAbout } from "./rows";
import { loadPartial, storePartial, sum4 } from "./vector-math";

/** Writes y[rows, cols] and, for the backward pass, rstd[rows] = 1 / sqrt(mean(x^2) + eps). */
export function rmsNormForward(
  x: usize,
  gain: usize,
  y: usize,
  rstd: usize,
  rows: i32,
  cols: i32,
  eps: f32,
): void {
  const end = (<usize>(cols & -4)) << 2;
  const tail = cols & 3;
  const share: f32 = <f32>1 / <f32>cols;
  for (let row = 0; row < rows; row++) {
    const inverse: f32 = <f32>1 / sqrt<f32>(sumSquaresAbout(x, 0, cols) * share + eps);
    const inverses = f32x4.splat(inverse);
    let at: usize = 0;
    for (; at < end; at += 16) {
      v128.store(y + at, f32x4.mul(f32x4.mul(v128.load(x + at), inverses), v128.load(gain + at)));
    }
    if (tail) {
      const normal = f32x4.mul(loadPartial(x + at, tail), inverses);
      storePartial(y + at, f32x4.mul(normal, loadPartial(gain + at, tail)), tail);
    }
    store<f32>(rstd, inverse);
    rstd += 4;
    x += (<usize>cols) << 2;
    y += (<usize>cols) << 2;
  }
}

/** Writes dx[rows, cols]; adds to dgain[cols]. dx may be dy. */
export function rmsNormBackward(
  x: usize,
  gain: usize,
  rstd: usize,
  dy: usize,
  dx: usize,
  dgain: usize,
  rows: i32,
  cols: i32,
): void {
  const end = (<usize>(cols & -4)) << 2;
  const tail = cols & 3;
  const share: f32 = <f32>1 / <f32>cols;
  for (let row = 0; row < rows; row++) {
    const inverses = f32x4.splat(load<f32>(rstd));
    let products = f32x4.splat(0); // of dy * gain * normal
    let at: usize = 0;
    for (; at < end; at += 16) {
      const slope = f32x4.mul(v128.load(dy + at), f32x4.mul(v128.load(x + at), inverses));
      products = f32x4.add(products, f32x4.mul(slope, v128.load(gain + at)));
      v128.store(dgain + at, f32x4.add(v128.load(dgain + at), slope));
    }
    if (tail) {
      const slope = f32x4.mul(
        loadPartial(dy + at, tail),
        f32x4.mul(loadPartial(x + at, tail), inverses),
      );
      products = f32x4.add(products, f32x4.mul(slope, loadPartial(gain + at, tail)));
      storePartial(dgain + at, f32x4.add(loadPartial(dgain + at, tail), slope), tail);
    }
    // dx = rstd * (dy * gain - normal * mean(dy * gain * normal))
    const meanProduct = f32x4.splat(sum4(products) * share);
    for (at = 0; at < end; at += 16) {
      const normal = f32x4.mul(v128.load(x + at), inverses);
      const g = f32x4.mul(v128.load(dy + at), v128.load(gain + at));
      v128.store(dx + at, f32x4.mul(f32x4.sub(g, f32x4.mul(normal, meanProduct)), inverses));
    }
    if (tail) {
      const normal = f32x4.mul(loadPartial(x + at, tail), inverses);
      const g = f32x4.mul(loadPartial(dy + at, tail), loadPartial(gain + at, tail));
      const rest = f32x4.sub(g, f32x4.mul(normal, meanProduct));
      storePartial(dx + at, f32x4.mul(rest, inverses), tail);
    }
    rstd += 4;
    x += (<usize>cols) << 2;
    dy += (<usize>cols) << 2;
    dx += (<usize>cols) << 2;
  }
}
