/**
 * The softmax of a tile of queries, all its rows at once, each in lanes of its own: forward with a
 * running maximum and sum (Milakov and Gimelshein 2018), backward from the saved logsumexp. Rows that a
 * cut tile has not are computed along and read by nobody. Scores carry a factor log2(e).
 */

import { BACKWARD_KEYS, FORWARD_KEYS } from "./attention-shape";
import { fill, scale as scaleValues } from "./elementwise";
import { exp2Term4 } from "./vector-math";

/** Bytes of a row of scores forward, and of a row of a block backward. */
const STRIP: usize = FORWARD_KEYS * 4;
const WIDTH: usize = BACKWARD_KEYS * 4;

/**
 * Gives -Infinity to the scores of keys that queries do not see: row r sees keys from `hidden` + r to
 * `visible` + r of `columns`, and those up to a multiple of 4 are none.
 */
export function hideKeys(
  scores: usize,
  stride: usize,
  rows: i32,
  hidden: i32,
  visible: i32,
  columns: i32,
): void {
  const wide = (columns + 3) & -4;
  for (let row = 0; row < rows; row++) {
    const end = max(0, min(columns, visible + row));
    if (end < wide) fill(scores + ((<usize>end) << 2), -Infinity, wide - end);
    if (hidden + row > 0) fill(scores, -Infinity, min(hidden + row, wide));
    scores += stride;
  }
}

/**
 * Replaces the scores of four rows by 2^(score - maximum), and brings the rows' running maxima, their
 * sums and their unnormalised outputs up to date; a row that has seen nothing has a sum of 0.
 */
export function softmaxTile(
  scores: usize,
  columns: i32,
  isFirst: bool,
  maxima: usize,
  sums: usize,
  out: usize,
  outStride: usize,
  rows: i32,
  headDim: i32,
): void {
  const end = scores + ((<usize>((columns + 3) & -4)) << 2);
  const none = f32x4.splat(-Infinity);
  let m0 = none;
  let m1 = none;
  let m2 = none;
  let m3 = none;
  for (let at = scores; at < end; at += 16) {
    m0 = f32x4.pmax(m0, v128.load(at));
    m1 = f32x4.pmax(m1, v128.load(at, STRIP));
    m2 = f32x4.pmax(m2, v128.load(at, 2 * STRIP));
    m3 = f32x4.pmax(m3, v128.load(at, 3 * STRIP));
  }
  const m01 = f32x4.pmax(firstLanesOf(m0, m1), lastLanesOf(m0, m1));
  const m23 = f32x4.pmax(firstLanesOf(m2, m3), lastLanesOf(m2, m3));
  let top = f32x4.pmax(firstHalves(m01, m23), lastHalves(m01, m23));
  if (!isFirst) top = f32x4.pmax(top, v128.load(maxima));
  // What is still nothing must not become -Infinity less itself.
  const shift = v128.andnot(top, f32x4.eq(top, none));
  let before = f32x4.splat(0);
  if (!isFirst) {
    const fade = exp2Term4(f32x4.sub(v128.load(maxima), shift));
    before = f32x4.mul(v128.load(sums), fade);
    if (v128.any_true(f32x4.ne(fade, f32x4.splat(1)))) {
      v128.store(sums, fade);
      for (let row = 0; row < rows; row++) {
        const factor = load<f32>(sums + ((<usize>row) << 2));
        scaleValues(out + <usize>row * outStride, factor, headDim);
      }
    }
  }
  const t0 = i32x4.shuffle(shift, shift, 0, 0, 0, 0);
  const t1 = i32x4.shuffle(shift, shift, 1, 1, 1, 1);
  const t2 = i32x4.shuffle(shift, shift, 2, 2, 2, 2);
  const t3 = i32x4.shuffle(shift, shift, 3, 3, 3, 3);
  let s0 = f32x4.splat(0);
  let s1 = f32x4.splat(0);
  let s2 = f32x4.splat(0);
  let s3 = f32x4.splat(0);
  for (let at = scores; at < end; at += 16) {
    const x0 = exp2Term4(f32x4.sub(v128.load(at), t0));
    const x1 = exp2Term4(f32x4.sub(v128.load(at, STRIP), t1));
    const x2 = exp2Term4(f32x4.sub(v128.load(at, 2 * STRIP), t2));
    const x3 = exp2Term4(f32x4.sub(v128.load(at, 3 * STRIP), t3));
    v128.store(at, x0);
    v128.store(at, x1, STRIP);
    v128.store(at, x2, 2 * STRIP);
    v128.store(at, x3, 3 * STRIP);
    s0 = f32x4.add(s0, x0);
    s1 = f32x4.add(s1, x1);
    s2 = f32x4.add(s2, x2);
    s3 = f32x4.add(s3, x3);
  }
  const s01 = f32x4.add(firstLanesOf(s0, s1), lastLanesOf(s0, s1));
  const s23 = f32x4.add(firstLanesOf(s2, s3), lastLanesOf(s2, s3));
  v128.store(maxima, top);
  v128.store(sums, f32x4.add(before, f32x4.add(firstHalves(s01, s23), lastHalves(s01, s23))));
}

/**
 * In place, for four rows: scores to P = 2^(score - lse), slopes (scaled dP) to
 * dS = P * (slope - delta); `lse` and `deltas` have the rows in their lanes.
 */
export function slopeTile(
  scores: usize,
  slopes: usize,
  columns: i32,
  lse: v128,
  deltas: v128,
): void {
  // A row that sees no key at all.
  const shift = v128.andnot(lse, f32x4.eq(lse, f32x4.splat(-Infinity)));
  const end = (<usize>((columns + 3) & -4)) << 2;
  const t0 = i32x4.shuffle(shift, shift, 0, 0, 0, 0);
  const t1 = i32x4.shuffle(shift, shift, 1, 1, 1, 1);
  const t2 = i32x4.shuffle(shift, shift, 2, 2, 2, 2);
  const t3 = i32x4.shuffle(shift, shift, 3, 3, 3, 3);
  const d0 = i32x4.shuffle(deltas, deltas, 0, 0, 0, 0);
  const d1 = i32x4.shuffle(deltas, deltas, 1, 1, 1, 1);
  const d2 = i32x4.shuffle(deltas, deltas, 2, 2, 2, 2);
  const d3 = i32x4.shuffle(deltas, deltas, 3, 3, 3, 3);
  for (let at: usize = 0; at < end; at += 16) {
    slope4(scores + at, slopes + at, t0, d0);
    slope4(scores + at + WIDTH, slopes + at + WIDTH, t1, d1);
    slope4(scores + at + 2 * WIDTH, slopes + at + 2 * WIDTH, t2, d2);
    slope4(scores + at + 3 * WIDTH, slopes + at + 3 * WIDTH, t3, d3);
  }
}

// @ts-ignore: decorator
@inline
function slope4(score: usize, slope: usize, shift: v128, delta: v128): void {
  const p = exp2Term4(f32x4.sub(v128.load(score), shift));
  v128.store(score, p);
  v128.store(slope, f32x4.mul(p, f32x4.sub(v128.load(slope), delta)));
}

// The first two lanes of x and y in turn, and the last two; then the first halves of two such, and the
// second: sums of rows come to lie in lanes.
// @ts-ignore: decorator
@inline
function firstLanesOf(x: v128, y: v128): v128 {
  return i32x4.shuffle(x, y, 0, 4, 1, 5);
}

// @ts-ignore: decorator
@inline
function lastLanesOf(x: v128, y: v128): v128 {
  return i32x4.shuffle(x, y, 2, 6, 3, 7);
}

// @ts-ignore: decorator
@inline
function firstHalves(x: v128, y: v128): v128 {
  return i32x4.shuffle(x, y, 0, 1, 4, 5);
}

// @ts-ignore: decorator
@inline
function lastHalves(x: v128, y: v128): v128 {
  return i32x4.shuffle(x, y, 2, 3, 6, 7);
}
