/**
 * Causal attention forward in blocks with a running softmax (Milakov and Gimelshein 2018; Dao et
 * al., FlashAttention, 2022, algorithm 1): no sequence x sequence matrix exists. Keys and values of
 * a head are packed once and serve all query heads of its group.
 */

import {
  BLOCK_KV,
  BLOCK_Q,
  packKeys,
  packValues,
  padded,
  panelBytes,
  SCORE_BYTES,
} from "./attention-shape";
import { scale as scaleValues } from "./elementwise";
import { multiplyPanels } from "./gemm";
import { TILE_COLUMNS } from "./gemm-tile";
import { log64 } from "./scalar-math";
import { exp1, exp4, max4, sum4 } from "./vector-math";

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
  const stride = <usize>((heads + 2 * kvHeads) * headDim) << 2;
  const outStride = <usize>(heads * headDim) << 2;
  const headBytes = <usize>headDim << 2;
  const group = heads / kvHeads;
  const keys = workspace;
  const values = keys + panelBytes(sequence, headDim);
  const scratch = values + panelBytes(sequence, headDim);
  for (let b = 0; b < batch; b++) {
    for (let kv = 0; kv < kvHeads; kv++) {
      const key = qkv + <usize>(heads + kv) * headBytes;
      packKeys(keys, key, stride, sequence, headDim);
      packValues(values, key + <usize>kvHeads * headBytes, stride, sequence, headDim);
      for (let head = kv * group; head < (kv + 1) * group; head++) {
        const at = <usize>head * headBytes;
        const lseAt = lse + (<usize>((b * heads + head) * sequence) << 2);
        for (let i = 0; i < sequence; i += BLOCK_Q) {
          attendBlock(
            qkv + at + <usize>i * stride,
            stride,
            keys,
            values,
            out + at + <usize>i * outStride,
            outStride,
            lseAt + (<usize>i << 2),
            i,
            min(BLOCK_Q, sequence - i),
            sequence,
            headDim,
            scratch,
          );
        }
      }
    }
    qkv += <usize>sequence * stride;
    out += <usize>sequence * outStride;
  }
}

/** One block of `rows` queries that begins at position `first`, over all keys it may see. */
function attendBlock(
  q: usize,
  stride: usize,
  keys: usize,
  values: usize,
  out: usize,
  outStride: usize,
  lse: usize,
  first: i32,
  rows: i32,
  sequence: i32,
  headDim: i32,
  scratch: usize,
): void {
  const scores = scratch;
  const sums = scratch + SCORE_BYTES;
  const spill = sums + BLOCK_Q * 4;
  const scale: f32 = <f32>(1 / sqrt<f64>(<f64>headDim));
  const seen = first + rows;
  const keyPanelBytes = <usize>(headDim * TILE_COLUMNS) << 2;
  for (let j = 0; j < seen; j += BLOCK_KV) {
    const columns = min(BLOCK_KV, seen - j);
    const keyPanels = keys + (<usize>(j * headDim) << 2);
    multiplyPanels(rows, columns, headDim, scale, q, stride, keyPanels, keyPanelBytes, 0, scores, BLOCK_KV * 4, spill);
    for (let row = 0; row < rows; row++) {
      const visible = min(columns, first + row + 1 - j);
      const score = scores + <usize>(row * BLOCK_KV * 4);
      softmaxRow(score, visible, columns, j == 0, sums + (<usize>row << 2), lse + (<usize>row << 2), out + <usize>row * outStride, headDim);
    }
    const depth = <usize>min(BLOCK_KV, sequence - j);
    const panels = values + (<usize>(j * padded(headDim)) << 2);
    multiplyPanels(rows, headDim, columns, 1, scores, BLOCK_KV * 4, panels, depth * (TILE_COLUMNS * 4), j == 0 ? 0 : 1, out, outStride, spill);
  }
  for (let row = 0; row < rows; row++) {
    const sum = load<f32>(sums + (<usize>row << 2));
    const at = lse + (<usize>row << 2);
    store<f32>(at, <f32>(<f64>load<f32>(at) + log64(<f64>sum)));
    scaleValues(out + <usize>row * outStride, <f32>1 / sum, headDim);
  }
}

/**
 * Replaces a row of scores by exp(score - maximum), 0 for keys in the future, and brings the row's
 * running maximum, its sum and its unnormalised output up to date.
 */
function softmaxRow(
  score: usize,
  visible: i32,
  columns: i32,
  isFirst: bool,
  sum: usize,
  maximum: usize,
  out: usize,
  headDim: i32,
): void {
  const wide = (columns + 3) & -4;
  for (let j = max(visible, 0); j < wide; j++) store<f32>(score + (<usize>j << 2), -Infinity);
  const end = <usize>wide << 2;
  let greatest = v128.load(score);
  for (let at: usize = 16; at < end; at += 16) greatest = f32x4.max(greatest, v128.load(score + at));
  let top = max4(greatest);
  if (!isFirst) {
    const before = load<f32>(maximum);
    top = max<f32>(top, before);
    const fade = exp1(before - top);
    store<f32>(sum, load<f32>(sum) * fade);
    if (fade != 1) scaleValues(out, fade, headDim);
  } else {
    store<f32>(sum, 0);
  }
  store<f32>(maximum, top);
  const shift = f32x4.splat(top);
  let sums = f32x4.splat(0);
  for (let at: usize = 0; at < end; at += 16) {
    const term = exp4(f32x4.sub(v128.load(score + at), shift));
    v128.store(score + at, term);
    sums = f32x4.add(sums, term);
  }
  store<f32>(sum, load<f32>(sum) + sum4(sums));
}

