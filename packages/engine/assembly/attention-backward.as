/**
 * Causal attention backward in blocks (Dao et al., FlashAttention, 2022, algorithm 4): probabilities
 * are computed again from the saved logsumexp, so that nothing of sequence x sequence is kept. With
 * delta = rowsum(dout * out): dS = P * (dout V^T - delta) * scale, dQ = dS K, dK = dS^T Q,
 * dV = P^T dout.
 */

import {
  BACKWARD_KEYS,
  BACKWARD_QUERIES,
  packedBytes,
  packKeys,
  packValues,
  padded,
  SCORE_BYTES,
} from "./attention-shape";
import { hideKeys, slopeTile } from "./attention-softmax";
import { packB } from "./gemm-pack";
import { multiplyColumns, multiplyRows } from "./gemm-tile";
import { TILE_COLUMNS, TILE_ROWS } from "./gemm-tile-store";
import { dot } from "./rows";
import { loadPartial, LOG2E } from "./vector-math";

/** Bytes of a row of a block of scores. */
const WIDTH: usize = BACKWARD_KEYS * 4;

/**
 * The backward of `attendForward`: adds to dq, dk and dv, laid out as q, k and v. With the output
 * and logsumexp of attention over more keys than these, it adds these keys' part.
 */
export function attendBackward(
  q: usize,
  k: usize,
  v: usize,
  out: usize,
  lse: usize,
  dout: usize,
  dq: usize,
  dk: usize,
  dv: usize,
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
  const packedValues = packedKeys + packedBytes(keys, headDim);
  const keyRows = packedValues + packedBytes(keys, headDim);
  const scratch = keyRows + packedBytes(keys, headDim);
  for (let b = 0; b < batch; b++) {
    for (let kv = 0; kv < kvHeads; kv++) {
      const place = <usize>kv * headBytes;
      packKeys(packedKeys, k + place, kvStride, keys, headDim);
      packKeys(packedValues, v + place, kvStride, keys, headDim);
      packValues(keyRows, k + place, kvStride, keys, headDim, BACKWARD_KEYS);
      for (let head = kv * group; head < (kv + 1) * group; head++) {
        const at = <usize>head * headBytes;
        const lseAt = lse + ((<usize>((b * heads + head) * queries)) << 2);
        for (let i = 0; i < queries; i += BACKWARD_QUERIES) {
          const row = at + <usize>i * stride;
          const outRow = at + <usize>i * outStride;
          backwardBlock(
            q + row,
            dq + row,
            stride,
            out + outRow,
            dout + outRow,
            outStride,
            lseAt + ((<usize>i) << 2),
            packedKeys,
            packedValues,
            keyRows,
            dk + place,
            dv + place,
            kvStride,
            min(BACKWARD_QUERIES, queries - i),
            i + shift,
            window,
            keys,
            headDim,
            scratch,
          );
        }
      }
    }
    q += <usize>queries * stride;
    dq += <usize>queries * stride;
    k += <usize>keys * kvStride;
    dk += <usize>keys * kvStride;
    v += <usize>keys * kvStride;
    dv += <usize>keys * kvStride;
    out += <usize>queries * outStride;
    dout += <usize>queries * outStride;
  }
}

/**
 * One block of queries, of which the first sees keys up to `last`, over all keys they see: their dQ,
 * and their part of dK and dV.
 */
function backwardBlock(
  q: usize,
  dq: usize,
  stride: usize,
  out: usize,
  dout: usize,
  outStride: usize,
  lse: usize,
  packedKeys: usize,
  packedValues: usize,
  keyRows: usize,
  dkey: usize,
  dvalue: usize,
  kvStride: usize,
  rows: i32,
  last: i32,
  window: i32,
  keys: i32,
  headDim: i32,
  scratch: usize,
): void {
  const probabilities = scratch;
  const slopes = probabilities + SCORE_BYTES;
  const deltas = slopes + SCORE_BYTES;
  const spill = deltas + BACKWARD_QUERIES * 4;
  const queryPanels = spill + TILE_ROWS * TILE_COLUMNS * 4;
  const doutPanels = queryPanels + ((<usize>(BACKWARD_QUERIES * padded(headDim))) << 2);
  const scale: f32 = <f32>1 / sqrt<f32>(<f32>headDim);
  const keyBytes = (<usize>(headDim * TILE_COLUMNS)) << 2;
  const rowBytes = (<usize>(rows * TILE_COLUMNS)) << 2;
  packB(false, queryPanels, q, stride, rows, headDim);
  packB(false, doutPanels, dout, outStride, rows, headDim);
  for (let row = 0; row < rows; row++) {
    const at = <usize>row * outStride;
    store<f32>(deltas + ((<usize>row) << 2), dot(out + at, dout + at, headDim));
  }
  const seen = max(0, min(keys, last + rows));
  const first = window > 0 ? max(0, last + 1 - window) & -BACKWARD_KEYS : 0;
  for (let j = first; j < seen; j += BACKWARD_KEYS) {
    const keyPanels = packedKeys + ((<usize>(j * headDim)) << 2);
    const valuePanels = packedValues + ((<usize>(j * headDim)) << 2);
    const keyRowPanels = keyRows + ((<usize>(j * padded(headDim))) << 2);
    const keyRowBytes = (<usize>(min(BACKWARD_KEYS, keys - j) * TILE_COLUMNS)) << 2;
    // Tiles of queries that see no key of this block come first in it, and are left out; with a
    // window so are those behind the last query that sees one.
    const begin = max(0, j - last) & -TILE_ROWS;
    let end = rows;
    if (window > 0) end = min(rows, (j + BACKWARD_KEYS + window - 1 - last + 3) & -TILE_ROWS);
    for (let i = begin; i < end; i += TILE_ROWS) {
      const tile = min(TILE_ROWS, rows - i);
      const columns = min(min(BACKWARD_KEYS, keys - j), last + i + tile - j);
      const p = probabilities + <usize>i * WIDTH;
      const d = slopes + <usize>i * WIDTH;
      const queries = q + <usize>i * stride;
      const douts = dout + <usize>i * outStride;
      const n = padded(columns);
      multiplyRows(
        queries,
        stride,
        keyPanels,
        keyBytes,
        tile,
        n,
        headDim,
        scale * LOG2E,
        0,
        p,
        WIDTH,
        spill,
      );
      multiplyRows(
        douts,
        outStride,
        valuePanels,
        keyBytes,
        tile,
        n,
        headDim,
        scale,
        0,
        d,
        WIDTH,
        spill,
      );
      const visible = last + i + 1 - j;
      const hidden = window > 0 ? visible - window : -TILE_ROWS;
      hideKeys(p, WIDTH, tile, hidden, visible, columns);
      const place = (<usize>i) << 2;
      const whole = tile == TILE_ROWS;
      const sums = whole ? v128.load(lse + place) : loadPartial(lse + place, tile);
      const logs = f32x4.mul(sums, f32x4.splat(LOG2E));
      const rowDeltas = f32x4.mul(v128.load(deltas + place), f32x4.splat(scale));
      slopeTile(p, d, columns, logs, rowDeltas);
      multiplyRows(
        d,
        WIDTH,
        keyRowPanels,
        keyRowBytes,
        tile,
        headDim,
        columns,
        1,
        1,
        dq + <usize>i * stride,
        stride,
        spill,
      );
    }
    const columns = min(BACKWARD_KEYS, seen - j);
    for (let c = 0; c < columns; c += TILE_ROWS) {
      // The first query that sees key j + c, in a tile that has been computed.
      const start = max(begin, j + c - last);
      if (start >= end) break;
      const tile = min(TILE_ROWS, columns - c);
      const at = <usize>start * WIDTH + ((<usize>c) << 2);
      const panel = (<usize>(start * TILE_COLUMNS)) << 2;
      const target = <usize>(j + c) * kvStride;
      multiplyColumns(
        slopes + at,
        WIDTH,
        queryPanels + panel,
        rowBytes,
        tile,
        headDim,
        min(end, rows) - start,
        1,
        1,
        dkey + target,
        kvStride,
        spill,
      );
      multiplyColumns(
        probabilities + at,
        WIDTH,
        doutPanels + panel,
        rowBytes,
        tile,
        headDim,
        min(end, rows) - start,
        1,
        1,
        dvalue + target,
        kvStride,
        spill,
      );
    }
  }
}
