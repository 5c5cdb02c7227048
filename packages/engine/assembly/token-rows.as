/**
 * Rows of tokens on their way to experts and back. Slot t * topK + j is choice j of token t. Each
 * kernel is the gradient of another: spreading rows and summing them are transposes.
 */

import { fill } from "./elementwise";
import { dot } from "./rows";

/**
 * out[rows, cols]: row r is source[slots[r] / topK], times weights[slots[r]] unless `weights` is 0;
 * a slot below 0 gives zeros.
 */
export function spreadRows(
  source: usize,
  slots: usize,
  weights: usize,
  out: usize,
  rows: i32,
  topK: i32,
  cols: i32,
): void {
  const bytes = (<usize>cols) << 2;
  for (let row = 0; row < rows; row++) {
    const slot = load<i32>(slots);
    if (slot < 0) {
      fill(out, 0, cols);
    } else {
      const from = source + <usize>(slot / topK) * bytes;
      if (weights == 0) memory.copy(out, from, bytes);
      else scaled(from, load<f32>(weights + ((<usize>slot) << 2)), out, cols, false);
    }
    slots += 4;
    out += bytes;
  }
}

/**
 * out[tokens, cols] = the sum over a token's slots, in order, of rows[places[slot]], times
 * weights[slot] unless `weights` is 0; a place below 0 gives nothing.
 */
export function combineRows(
  rows: usize,
  places: usize,
  weights: usize,
  out: usize,
  tokens: i32,
  topK: i32,
  cols: i32,
): void {
  const bytes = (<usize>cols) << 2;
  for (let token = 0; token < tokens; token++) {
    fill(out, 0, cols);
    for (let choice = 0; choice < topK; choice++) {
      const place = load<i32>(places);
      if (place >= 0) {
        const weight: f32 = weights == 0 ? 1 : load<f32>(weights);
        scaled(rows + <usize>place * bytes, weight, out, cols, true);
      }
      places += 4;
      if (weights != 0) weights += 4;
    }
    out += bytes;
  }
}

/** dweights[tokens, topK]: the product of dy[token] and rows[places[slot]]; 0 for a place below 0. */
export function combineWeightsGradient(
  dy: usize,
  rows: usize,
  places: usize,
  dweights: usize,
  tokens: i32,
  topK: i32,
  cols: i32,
): void {
  const bytes = (<usize>cols) << 2;
  for (let token = 0; token < tokens; token++) {
    for (let choice = 0; choice < topK; choice++) {
      const place = load<i32>(places);
      store<f32>(dweights, place < 0 ? 0 : dot(dy, rows + <usize>place * bytes, cols));
      places += 4;
      dweights += 4;
    }
    dy += bytes;
  }
}

/** y = factor * x, or added to y. */
function scaled(x: usize, factor: f32, y: usize, n: i32, adds: bool): void {
  const factors = f32x4.splat(factor);
  const end = (<usize>(n & -4)) << 2;
  let at: usize = 0;
  for (; at < end; at += 16) {
    const term = f32x4.mul(factors, v128.load(x + at));
    v128.store(y + at, adds ? f32x4.add(v128.load(y + at), term) : term);
  }
  for (const last = (<usize>n) << 2; at < last; at += 4) {
    const term = factor * load<f32>(x + at);
    store<f32>(y + at, adds ? load<f32>(y + at) + term : term);
  }
}
