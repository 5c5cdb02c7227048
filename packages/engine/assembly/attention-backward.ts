/**
 * Causal attention backward in blocks (Dao et al., FlashAttention, 2022, algorithm 4): probabilities
 * are computed again from the saved logsumexp, so that nothing of sequence x sequence is kept. With
 * delta = rowsum(dout * out): dS = P * (dout V^T - delta) * scale, dQ = dS K, dK = dS^T Q,
 * dV = P^T dout.
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
import { fill } from "./elementwise";
import { multiplyPanels, multiplyTransposedPanels } from "./gemm";
import { packB } from "./gemm-pack";
import { TILE_COLUMNS, TILE_ROWS } from "./gemm-tile";
import { exp4, loadPartial, sum4 } from "./vector-math";

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
  const stride = <usize>((heads + 2 * kvHeads) * headDim) << 2;
  const outStride = <usize>(heads * headDim) << 2;
  const headBytes = <usize>headDim << 2;
  const group = heads / kvHeads;
  const keys = workspace;
  const values = keys + panelBytes(sequence, headDim);
  const keyRows = values + panelBytes(sequence, headDim);
  const scratch = keyRows + panelBytes(sequence, headDim);
  for (let b = 0; b < batch; b++) {
    for (let kv = 0; kv < kvHeads; kv++) {
      const keyAt = <usize>(heads + kv) * headBytes;
      const valueAt = keyAt + <usize>kvHeads * headBytes;
      packKeys(keys, qkv + keyAt, stride, sequence, headDim);
      packKeys(values, qkv + valueAt, stride, sequence, headDim);
      packValues(keyRows, qkv + keyAt, stride, sequence, headDim);
      for (let s = 0; s < sequence; s++) {
        fill(dqkv + keyAt + <usize>s * stride, 0, headDim);
        fill(dqkv + valueAt + <usize>s * stride, 0, headDim);
      }
      for (let head = kv * group; head < (kv + 1) * group; head++) {
        const at = <usize>head * headBytes;
        const lseAt = lse + (<usize>((b * heads + head) * sequence) << 2);
        for (let i = 0; i < sequence; i += BLOCK_Q) {
          const row = <usize>i * stride;
          const outRow = at + <usize>i * outStride;
          backwardBlock(
            qkv + at + row,
            dqkv + at + row,
            stride,
            out + outRow,
            dout + outRow,
            outStride,
            lseAt + (<usize>i << 2),
            keys,
            values,
            keyRows,
            dqkv + keyAt,
            dqkv + valueAt,
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
    dqkv += <usize>sequence * stride;
    out += <usize>sequence * outStride;
    dout += <usize>sequence * outStride;
  }
}

/** One block of queries over all keys it saw: dQ of the block, and its part of dK and dV. */
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
  rows: i32,
  sequence: i32,
  headDim: i32,
  scratch: usize,
): void {
  const probabilities = scratch;
  const slopes = probabilities + SCORE_BYTES;
  const deltas = slopes + SCORE_BYTES;
  const queryPanels = deltas + BLOCK_Q * 4;
  const doutPanels = queryPanels + (<usize>(BLOCK_Q * padded(headDim)) << 2);
  const spill = doutPanels + (<usize>(BLOCK_Q * padded(headDim)) << 2);
  const scale: f32 = <f32>(1 / sqrt<f64>(<f64>headDim));
  packB(false, queryPanels, q, stride, rows, headDim);
  packB(false, doutPanels, dout, outStride, rows, headDim);
  for (let row = 0; row < rows; row++) {
    const at = <usize>row * outStride;
    store<f32>(deltas + (<usize>row << 2), dot(out + at, dout + at, headDim));
  }
  const width: usize = BLOCK_KV * 4;
  const seen = first + rows;
  const keyPanelBytes = <usize>(headDim * TILE_COLUMNS) << 2;
  const blockPanelBytes = <usize>(rows * TILE_COLUMNS) << 2;
  for (let j = 0; j < seen; j += BLOCK_KV) {
    const columns = min(BLOCK_KV, seen - j);
    const panel = <usize>(j * headDim) << 2;
    multiplyPanels(rows, columns, headDim, scale, q, stride, keys + panel, keyPanelBytes, 0, probabilities, width, spill);
    multiplyPanels(rows, columns, headDim, 1, dout, outStride, values + panel, keyPanelBytes, 0, slopes, width, spill);
    for (let row = 0; row < rows; row++) {
      const at = <usize>row * width;
      const shift = load<f32>(lse + (<usize>row << 2));
      const delta = load<f32>(deltas + (<usize>row << 2));
      softmaxSlopeRow(probabilities + at, slopes + at, min(columns, first + row + 1 - j), columns, shift, delta, scale);
    }
    const depth = <usize>min(BLOCK_KV, sequence - j);
    const target = <usize>j * stride;
    const block = keyRows + (<usize>(j * padded(headDim)) << 2);
    multiplyPanels(rows, headDim, columns, 1, slopes, width, block, depth * (TILE_COLUMNS * 4), j == 0 ? 0 : 1, dq, stride, spill);
    multiplyTransposedPanels(columns, headDim, rows, 1, slopes, width, TILE_ROWS * 4, queryPanels, blockPanelBytes, 1, dkey + target, stride, spill);
    multiplyTransposedPanels(columns, headDim, rows, 1, probabilities, width, TILE_ROWS * 4, doutPanels, blockPanelBytes, 1, dvalue + target, stride, spill);
  }
}

/** In place: scores to P = exp(score - lse), dP to dS = P * (dP - delta) * scale; 0 in the future. */
function softmaxSlopeRow(
  score: usize,
  slope: usize,
  visible: i32,
  columns: i32,
  lse: f32,
  delta: f32,
  scale: f32,
): void {
  const shift = f32x4.splat(lse);
  const deltas = f32x4.splat(delta);
  const scales = f32x4.splat(scale);
  const end = <usize>((columns + 3) & -4) << 2;
  for (let at: usize = 0; at < end; at += 16) {
    const p = exp4(f32x4.sub(v128.load(score + at), shift));
    const rest = f32x4.mul(f32x4.sub(v128.load(slope + at), deltas), scales);
    v128.store(score + at, p);
    v128.store(slope + at, f32x4.mul(p, rest));
  }
  for (let at = <usize>max(visible, 0) << 2; at < end; at += 4) {
    store<f32>(score + at, 0);
    store<f32>(slope + at, 0);
  }
}

function dot(x: usize, y: usize, n: i32): f32 {
  let sums = f32x4.splat(0);
  const end = <usize>(n & -4) << 2;
  let at: usize = 0;
  for (; at < end; at += 16) sums = f32x4.add(sums, f32x4.mul(v128.load(x + at), v128.load(y + at)));
  const tail = n & 3;
  if (tail) sums = f32x4.add(sums, f32x4.mul(loadPartial(x + at, tail), loadPartial(y + at, tail)));
  return sum4(sums);
}
