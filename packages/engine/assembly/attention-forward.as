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
import { hideKeys, softmaxTile } from "./attention-softmax";
import { fill, scale as scaleValues } from "./elementwise";
import { multiplyRows } from "./gemm-tile";
import { TILE_COLUMNS, TILE_ROWS } from "./gemm-tile-store";
import { log64 } from "./scalar-math";
import { LOG2E } from "./vector-math";

const LN2: f64 = 0.6931471805599453;

/**
 * Attention of any queries to any keys: query i sees key j where j <= i + shift and, with a window,
 * j > i + shift - window. Writes out[batch * queries, heads * headDim] and lse[batch, heads, queries];
 * a query that sees nothing gets 0 and -Infinity. Strides are elements of a row of q, and of k and v.
 */
export function attendForward(
  q: usize,
  k: usize,
  v: usize,
  out: usize,
  lse: usize,
  batch: i32,
  heads: i32,
  kvHeads: i32,
  queries: i32,
  keys: i32,
  headDim: i32,
  queryStride: i32,
  keyStride: i32,
  shift: i32,
  window: i32,
  workspace: usize,
): void {
  const stride = (<usize>queryStride) << 2;
  const kvStride = (<usize>keyStride) << 2;
  const outStride = (<usize>(heads * headDim)) << 2;
  const headBytes = (<usize>headDim) << 2;
  const group = heads / kvHeads;
  const packedKeys = workspace;
  const packedRows = packedKeys + packedBytes(keys, headDim);
  const scratch = packedRows + packedBytes(keys, headDim);
  for (let b = 0; b < batch; b++) {
    for (let kv = 0; kv < kvHeads; kv++) {
      packKeys(packedKeys, k + <usize>kv * headBytes, kvStride, keys, headDim);
      packValues(packedRows, v + <usize>kv * headBytes, kvStride, keys, headDim, FORWARD_KEYS);
      for (let head = kv * group; head < (kv + 1) * group; head++) {
        let query = q + <usize>head * headBytes;
        let o = out + <usize>head * headBytes;
        let sums = lse + ((<usize>((b * heads + head) * queries)) << 2);
        for (let i = 0; i < queries; i += TILE_ROWS) {
          attendTile(
            query,
            stride,
            packedKeys,
            packedRows,
            o,
            outStride,
            sums,
            min(TILE_ROWS, queries - i),
            i + shift,
            window,
            keys,
            headDim,
            scratch,
          );
          query += TILE_ROWS * stride;
          o += TILE_ROWS * outStride;
          sums += TILE_ROWS * 4;
        }
      }
    }
    q += <usize>queries * stride;
    k += <usize>keys * kvStride;
    v += <usize>keys * kvStride;
    out += <usize>queries * outStride;
  }
}

/** A tile of queries, of which the first sees keys up to `last`, over all keys they see. */
function attendTile(
  q: usize,
  stride: usize,
  packedKeys: usize,
  packedRows: usize,
  out: usize,
  outStride: usize,
  lse: usize,
  rows: i32,
  last: i32,
  window: i32,
  keys: i32,
  headDim: i32,
  scratch: usize,
): void {
  const width: usize = FORWARD_KEYS * 4;
  const sums = scratch + STRIP_BYTES;
  const maxima = sums + TILE_ROWS * 4;
  const spill = maxima + TILE_ROWS * 4;
  const scale: f32 = LOG2E / sqrt<f32>(<f32>headDim);
  const keyBytes = (<usize>(headDim * TILE_COLUMNS)) << 2;
  const seen = max(0, min(keys, last + rows));
  const first = window > 0 ? max(0, last + 1 - window) & -FORWARD_KEYS : 0;
  for (let j = first; j < seen; j += FORWARD_KEYS) {
    const columns = min(FORWARD_KEYS, seen - j);
    const valueBytes = (<usize>(min(FORWARD_KEYS, keys - j) * TILE_COLUMNS)) << 2;
    const keyPanels = packedKeys + ((<usize>(j * headDim)) << 2);
    const valuePanels = packedRows + ((<usize>(j * padded(headDim))) << 2);
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
    const visible = last + 1 - j;
    const hidden = window > 0 ? visible - window : -TILE_ROWS;
    hideKeys(scratch, width, rows, hidden, visible, columns);
    softmaxTile(scratch, columns, j == first, maxima, sums, out, outStride, rows, headDim);
    const keep: f32 = j == first ? 0 : 1;
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
    const at = (<usize>row) << 2;
    const o = out + <usize>row * outStride;
    const sum: f32 = first < seen ? load<f32>(sums + at) : 0;
    if (sum == 0) {
      store<f32>(lse + at, -Infinity);
      fill(o, 0, headDim);
    } else {
      store<f32>(lse + at, <f32>(<f64>load<f32>(maxima + at) * LN2 + log64(<f64>sum)));
      scaleValues(o, <f32>1 / sum, headDim);
    }
  }
}
