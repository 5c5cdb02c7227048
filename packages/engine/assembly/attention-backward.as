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
import { fill } from "./elementwise";
import { packB } from "./gemm-pack";
import { multiplyColumns, multiplyRows, TILE_COLUMNS, TILE_ROWS } from "./gemm-tile";
import { exp2Term4, firstLanes, loadPartial, LOG2E, sum4 } from "./vector-math";

/** Bytes of a row of a block of scores. */
const WIDTH: usize = BACKWARD_KEYS * 4;

/** Writes dqkv[batch * sequence, (heads + 2 * kvHeads) * headDim]. */
export function attentionBackward(
  qkv: usize,
  out: usize,
  lse: usize,
  dout: usize,
  dqkv: usize,
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
  const keyRows = values + packedBytes(sequence, headDim);
  const scratch = keyRows + packedBytes(sequence, headDim);
  for (let b = 0; b < batch; b++) {
    for (let kv = 0; kv < kvHeads; kv++) {
      const keyAt = <usize>(heads + kv) * headBytes;
      const valueAt = keyAt + <usize>kvHeads * headBytes;
      packKeys(keys, qkv + keyAt, stride, sequence, headDim);
      packKeys(values, qkv + valueAt, stride, sequence, headDim);
      packValues(keyRows, qkv + keyAt, stride, sequence, headDim, BACKWARD_KEYS);
      for (let s = 0; s < sequence; s++) {
        fill(dqkv + keyAt + <usize>s * stride, 0, headDim);
        fill(dqkv + valueAt + <usize>s * stride, 0, headDim);
      }
      for (let head = kv * group; head < (kv + 1) * group; head++) {
        const at = <usize>head * headBytes;
        const lseAt = lse + ((<usize>((b * heads + head) * sequence)) << 2);
        for (let i = 0; i < sequence; i += BACKWARD_QUERIES) {
          const row = at + <usize>i * stride;
          const outRow = at + <usize>i * outStride;
          backwardBlock(
            qkv + row,
            dqkv + row,
            stride,
            out + outRow,
            dout + outRow,
            outStride,
            lseAt + ((<usize>i) << 2),
            keys,
            values,
            keyRows,
            dqkv + keyAt,
            dqkv + valueAt,
            i,
            sequence,
            headDim,
            scratch,
          );
        }
      }
    }
    qkv += <usize>sequence * stride;
    dqkv += <usize>sequence * stride;
    out += <usize>sequence * outStride;
    dout += <usize>sequence * outStride;
  }
}

/** One block of queries over all keys they see: their dQ, and their part of dK and dV. */
function backwardBlock(
  q: usize,
  dq: usize,
  stride: usize,
  out: usize,
  dout: usize,
  outStride: usize,
  lse: usize,
  keys: usize,
  values: usize,
  keyRows: usize,
  dkey: usize,
  dvalue: usize,
  first: i32,
  sequence: i32,
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
  const rows = min(BACKWARD_QUERIES, sequence - first);
  const rowBytes = (<usize>(rows * TILE_COLUMNS)) << 2;
  packB(false, queryPanels, q, stride, rows, headDim);
  packB(false, doutPanels, dout, outStride, rows, headDim);
  for (let row = 0; row < rows; row++) {
    const at = <usize>row * outStride;
    store<f32>(deltas + ((<usize>row) << 2), dot(out + at, dout + at, headDim));
  }
  const seen = first + rows;
  for (let j = 0; j < seen; j += BACKWARD_KEYS) {
    const keyPanels = keys + ((<usize>(j * headDim)) << 2);
    const valuePanels = values + ((<usize>(j * headDim)) << 2);
    const keyRowPanels = keyRows + ((<usize>(j * padded(headDim))) << 2);
    const keyRowBytes = (<usize>(min(BACKWARD_KEYS, sequence - j) * TILE_COLUMNS)) << 2;
    const keep: f32 = j == 0 ? 0 : 1;
    // Tiles of queries that see no key of this block come first in it, and are left out.
    for (let i = max(0, j - first); i < rows; i += TILE_ROWS) {
      const tile = min(TILE_ROWS, rows - i);
      const columns = min(BACKWARD_KEYS, first + i + tile - j);
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
      for (let row = 0; row < tile; row++) {
        const at = <usize>row * WIDTH;
        const place = (<usize>(i + row)) << 2;
        const delta = load<f32>(deltas + place) * scale;
        const visible = min(columns, first + i + row + 1 - j);
        slopeRow(p + at, d + at, visible, load<f32>(lse + place) * LOG2E, delta);
      }
      multiplyRows(
        d,
        WIDTH,
        keyRowPanels,
        keyRowBytes,
        tile,
        headDim,
        columns,
        1,
        keep,
        dq + <usize>i * stride,
        stride,
        spill,
      );
    }
    const columns = min(BACKWARD_KEYS, seen - j);
    for (let c = 0; c < columns; c += TILE_ROWS) {
      // The first query that sees key j + c; a multiple of the tile's rows, as first, j and c are.
      const start = max(0, j + c - first);
      const tile = min(TILE_ROWS, columns - c);
      const at = <usize>start * WIDTH + ((<usize>c) << 2);
      const panel = (<usize>(start * TILE_COLUMNS)) << 2;
      const target = <usize>(j + c) * stride;
      multiplyColumns(
        slopes + at,
        WIDTH,
        queryPanels + panel,
        rowBytes,
        tile,
        headDim,
        rows - start,
        1,
        1,
        dkey + target,
        stride,
        spill,
      );
      multiplyColumns(
        probabilities + at,
        WIDTH,
        doutPanels + panel,
        rowBytes,
        tile,
        headDim,
        rows - start,
        1,
        1,
        dvalue + target,
        stride,
        spill,
      );
    }
  }
}

/**
 * In place, for the `visible` keys of a row: scores to P = 2^(score - lse), slopes (scaled dP) to
 * dS = P * (slope - delta); up to three keys behind them get 0.
 */
function slopeRow(score: usize, slope: usize, visible: i32, lse: f32, delta: f32): void {
  const shift = f32x4.splat(lse);
  const deltas = f32x4.splat(delta);
  const end = (<usize>(visible & -4)) << 2;
  let at: usize = 0;
  for (; at < end; at += 16) {
    const p = exp2Term4(f32x4.sub(v128.load(score + at), shift));
    v128.store(score + at, p);
    v128.store(slope + at, f32x4.mul(p, f32x4.sub(v128.load(slope + at), deltas)));
  }
  const tail = visible & 3;
  if (tail) {
    const mask = firstLanes(tail);
    const p = v128.and(exp2Term4(f32x4.sub(v128.load(score + at), shift)), mask);
    const d = f32x4.mul(p, f32x4.sub(v128.load(slope + at), deltas));
    v128.store(score + at, p);
    v128.store(slope + at, v128.and(d, mask));
  }
}

function dot(x: usize, y: usize, n: i32): f32 {
  let sums = f32x4.splat(0);
  const end = (<usize>(n & -4)) << 2;
  let at: usize = 0;
  for (; at < end; at += 16)
    sums = f32x4.add(sums, f32x4.mul(v128.load(x + at), v128.load(y + at)));
  const tail = n & 3;
  if (tail) sums = f32x4.add(sums, f32x4.mul(loadPartial(x + at, tail), loadPartial(y + at, tail)));
  return sum4(sums);
}
