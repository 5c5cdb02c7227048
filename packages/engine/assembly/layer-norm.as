/**
 * Layer normalisation over the last dim (Ba et al. 2016): y = (x - mean) * rstd * gain + bias, the
 * variance over the centred values so that a large mean costs no precision. Columns past the last
 * whole vector go through `loadPartial`, whose missing lanes are 0.
 */

import { sumRow, sumSquaresAbout } from "./rows";
import { firstLanes, loadPartial, storePartial, sum4 } from "./vector-math";

/** Writes y[rows, cols] and, for the backward pass, mean[rows] and rstd[rows]. */
export function layerNormForward(
  x: usize,
  gain: usize,
  bias: usize,
  y: usize,
  mean: usize,
  rstd: usize,
  rows: i32,
  cols: i32,
  eps: f32,
): void {
  const end = (<usize>(cols & -4)) << 2;
  const tail = cols & 3;
  const share: f32 = <f32>1 / <f32>cols;
  for (let row = 0; row < rows; row++) {
    const centre = sumRow(x, cols) * share;
    const inverse: f32 = <f32>1 / sqrt<f32>(sumSquaresAbout(x, centre, cols) * share + eps);
    const centres = f32x4.splat(centre);
    const inverses = f32x4.splat(inverse);
    let at: usize = 0;
    for (; at < end; at += 16) {
      const normal = f32x4.mul(f32x4.sub(v128.load(x + at), centres), inverses);
      v128.store(y + at, f32x4.add(f32x4.mul(normal, v128.load(gain + at)), v128.load(bias + at)));
    }
    if (tail) {
      const normal = f32x4.mul(f32x4.sub(loadPartial(x + at, tail), centres), inverses);
      const scaled = f32x4.mul(normal, loadPartial(gain + at, tail));
      storePartial(y + at, f32x4.add(scaled, loadPartial(bias + at, tail)), tail);
    }
    store<f32>(mean, centre);
    store<f32>(rstd, inverse);
    mean += 4;
    rstd += 4;
    x += (<usize>cols) << 2;
    y += (<usize>cols) << 2;
  }
}

/** Writes dx[rows, cols]; adds to dgain[cols] and dbias[cols]. dx may be dy. */
export function layerNormBackward(
  x: usize,
  gain: usize,
  mean: usize,
  rstd: usize,
  dy: usize,
  dx: usize,
  dgain: usize,
  dbias: usize,
  rows: i32,
  cols: i32,
): void {
  const end = (<usize>(cols & -4)) << 2;
  const tail = cols & 3;
  const share: f32 = <f32>1 / <f32>cols;
  for (let row = 0; row < rows; row++) {
    const centres = f32x4.splat(load<f32>(mean));
    const inverses = f32x4.splat(load<f32>(rstd));
    let sums = f32x4.splat(0); // of g = dy * gain
    let products = f32x4.splat(0); // of g * normal
    let at: usize = 0;
    for (; at < end; at += 16) {
      const normal = f32x4.mul(f32x4.sub(v128.load(x + at), centres), inverses);
      const d = v128.load(dy + at);
      const g = f32x4.mul(d, v128.load(gain + at));
      sums = f32x4.add(sums, g);
      products = f32x4.add(products, f32x4.mul(g, normal));
      v128.store(dgain + at, f32x4.add(v128.load(dgain + at), f32x4.mul(d, normal)));
      v128.store(dbias + at, f32x4.add(v128.load(dbias + at), d));
    }
    if (tail) {
      const normal = f32x4.mul(f32x4.sub(loadPartial(x + at, tail), centres), inverses);
      const d = loadPartial(dy + at, tail);
      const g = f32x4.mul(d, loadPartial(gain + at, tail));
      sums = f32x4.add(sums, g);
      products = f32x4.add(products, v128.and(f32x4.mul(g, normal), firstLanes(tail)));
      storePartial(
        dgain + at,
        f32x4.add(loadPartial(dgain + at, tail), f32x4.mul(d, normal)),
        tail,
      );
      storePartial(dbias + at, f32x4.add(loadPartial(dbias + at, tail), d), tail);
    }
    // dx = rstd * (g - mean(g) - normal * mean(g * normal))
    const meanG = f32x4.splat(sum4(sums) * share);
    const meanProduct = f32x4.splat(sum4(products) * share);
    for (at = 0; at < end; at += 16) {
      const normal = f32x4.mul(f32x4.sub(v128.load(x + at), centres), inverses);
      const g = f32x4.mul(v128.load(dy + at), v128.load(gain + at));
      const rest = f32x4.sub(f32x4.sub(g, meanG), f32x4.mul(normal, meanProduct));
      v128.store(dx + at, f32x4.mul(rest, inverses));
    }
    if (tail) {
      const normal = f32x4.mul(f32x4.sub(loadPartial(x + at, tail), centres), inverses);
      const g = f32x4.mul(loadPartial(dy + at, tail), loadPartial(gain + at, tail));
      const rest = f32x4.sub(f32x4.sub(g, meanG), f32x4.mul(normal, meanProduct));
      storePartial(dx + at, f32x4.mul(rest, inverses), tail);
    }
    mean += 4;
    rstd += 4;
    x += (<usize>cols) << 2;
    dy += (<usize>cols) << 2;
    dx += (<usize>cols) << 2;
  }
}
