/**
 * Causal attention forward, four queries at a time against blocks of keys with a running softmax
 * (Milakov and Gimelshein 2018; Dao et al., FlashAttention, 2022, algorithm 1): no sequence x
 * sequence matrix exists, and keys that a tile of queries cannot see are not multiplied. Keys and
 * values of a head are packed once and serve all query heads of its group.
 *
 * Scores carry a factor log2(e), so that exponentials are powers of two.
 */

import {
  FORWARD_KEYS,
  packedBytes,
  packKeys,
  packValues,
  padded,
  STRIP_BYTES,
} from "./attention-shape";
import { scale as scaleValues } from "./elementwise";
import { multiplyRows, TILE_COLUMNS, TILE_ROWS } from "./gemm-tile";
import { log64 } from "./scalar-math";
import { exp2Term, exp2Term4, firstLanes, LOG2E, max4, sum4 } from "./vector-math";

const LN2: f64 = 0.6931471805599453;

/** Writes out[batch * sequence, heads * headDim] and lse[batch, heads, sequence]. */
export function attentionForward(
  qkv: usize,
  out: usize,
  lse: usize,
  batch: i32,
  heads: i32,
  kvHeads: i32,
  sequence: i32,
  headDim: i32,
  workspace: usize,
): void {
  const stride = (<usize>((heads + 2 * kvHeads) * headDim)) << 2;
  const outStride = (<usize>(heads * headDim)) << 2;
  const headBytes = (<usize>headDim) << 2;
  const group = heads / kvHeads;
  const keys = workspace;
  const values = keys + packedBytes(sequence, headDim);
  const scratch = values + packedBytes(sequence, headDim);
  for (let b = 0; b < batch; b++) {
    for (let kv = 0; kv < kvHeads; kv++) {
      const key = qkv + <usize>(heads + kv) * headBytes;
      const value = key + <usize>kvHeads * headBytes;
      packKeys(keys, key, stride, sequence, headDim);
      packValues(values, value, stride, sequence, headDim, FORWARD_KEYS);
      for (let head = kv * group; head < (kv + 1) * group; head++) {
        let q = qkv + <usize>head * headBytes;
        let o = out + <usize>head * headBytes;
        let sums = lse + ((<usize>((b * heads + head) * sequence)) << 2);
        for (let i = 0; i < sequence; i += TILE_ROWS) {
          attendTile(q, stride, keys, values, o, outStride, sums, i, sequence, headDim, scratch);
          q += TILE_ROWS * stride;
          o += TILE_ROWS * outStride;
          sums += TILE_ROWS * 4;
        }
      }
    }
    qkv += <usize>sequence * stride;
    out += <usize>sequence * outStride;
  }
}

/** The tile of queries that begins at position `first`, over all keys they see. */
function attendTile(
  q: usize,
  stride: usize,
  keys: usize,
  values: usize,
  out: usize,
  outStride: usize,
  lse: usize,
  first: i32,
  sequence: i32,
  headDim: i32,
  scratch: usize,
): void {
  const width: usize = FORWARD_KEYS * 4;
  const sums = scratch + STRIP_BYTES;
  const spill = sums + TILE_ROWS * 4;
  const scale: f32 = LOG2E / sqrt<f32>(<f32>headDim);
  const keyBytes = (<usize>(headDim * TILE_COLUMNS)) << 2;
  const rows = min(TILE_ROWS, sequence - first);
  const seen = first + rows;
  for (let j = 0; j < seen; j += FORWARD_KEYS) {
    const columns = min(FORWARD_KEYS, seen - j);
    const valueBytes = (<usize>(min(FORWARD_KEYS, sequence - j) * TILE_COLUMNS)) << 2;
    const keyPanels = keys + ((<usize>(j * headDim)) << 2);
    const valuePanels = values + ((<usize>(j * padded(headDim))) << 2);
    multiplyRows(
      q,
      stride,
      keyPanels,
      keyBytes,
      rows,
      padded(columns),
      headDim,
      scale,
      0,
      scratch,
      width,
      spill,
    );
    for (let row = 0; row < rows; row++) {
      const visible = min(columns, first + row + 1 - j);
      const at = (<usize>row) << 2;
      const o = out + <usize>row * outStride;
      softmaxRow(scratch + <usize>row * width, visible, j == 0, sums + at, lse + at, o, headDim);
    }
    const keep: f32 = j == 0 ? 0 : 1;
    multiplyRows(
      scratch,
      width,
      valuePanels,
      valueBytes,
      rows,
      headDim,
      columns,
      1,
      keep,
      out,
      outStride,
      spill,
    );
  }
  for (let row = 0; row < rows; row++) {
    const sum = load<f32>(sums + ((<usize>row) << 2));
    const at = lse + ((<usize>row) << 2);
    store<f32>(at, <f32>(<f64>load<f32>(at) * LN2 + log64(<f64>sum)));
    scaleValues(out + <usize>row * outStride, <f32>1 / sum, headDim);
  }
}

/**
 * Replaces the `visible` scores of a row by 2^(score - maximum), up to three keys behind them by 0,
 * and brings the row's running maximum, its sum and its unnormalised output up to date.
 */
function softmaxRow(
  score: usize,
  visible: i32,
  isFirst: bool,
  sum: usize,
  maximum: usize,
  out: usize,
  headDim: i32,
): void {
  const end = (<usize>(visible & -4)) << 2;
  const tail = visible & 3;
  const mask = firstLanes(tail);
  let greatest = f32x4.splat(-Infinity);
  if (tail) greatest = v128.bitselect(v128.load(score + end), greatest, mask);
  for (let at: usize = 0; at < end; at += 16)
    greatest = f32x4.pmax(greatest, v128.load(score + at));
  let top = max4(greatest);
  let before: f32 = 0;
  if (!isFirst) {
    const previous = load<f32>(maximum);
    top = max<f32>(top, previous);
    const fade = exp2Term(previous - top);
    before = load<f32>(sum) * fade;
    if (fade != 1) scaleValues(out, fade, headDim);
  }
  const shift = f32x4.splat(top);
  let sums = f32x4.splat(0);
  for (let at: usize = 0; at < end; at += 16) {
    const term = exp2Term4(f32x4.sub(v128.load(score + at), shift));
    v128.store(score + at, term);
    sums = f32x4.add(sums, term);
  }
  if (tail) {
    const term = v128.and(exp2Term4(f32x4.sub(v128.load(score + end), shift)), mask);
    v128.store(score + end, term);
    sums = f32x4.add(sums, term);
  }
  store<f32>(maximum, top);
  store<f32>(sum, before + sum4(sums));
}
