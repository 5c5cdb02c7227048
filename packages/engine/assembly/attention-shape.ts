/**
 * What attention forward and backward share: the layout of a row of qkv, the block sizes and the
 * layout of the workspace. A row is the q heads, then the k heads, then the v heads; query head h
 * reads key-value head h / (heads / kvHeads) (Ainslie et al. 2023).
 */

import { packB } from "./gemm-pack";
import { TILE_BYTES } from "./gemm";
import { TILE_COLUMNS } from "./gemm-tile";

/** Queries of a block; a multiple of the tile's rows. */
export const BLOCK_Q: i32 = 48;
/** Keys of a block; a multiple of the tile's columns. */
export const BLOCK_KV: i32 = 128;

/** Bytes of one block of scores, and of the floats behind it that a tile may read. */
export const SCORE_BYTES: i32 = BLOCK_Q * BLOCK_KV * 4 + 64;

// @ts-ignore: decorator
@inline
export function padded(size: i32): i32 {
  return (size + TILE_COLUMNS - 1) & -TILE_COLUMNS;
}

/** Bytes of all keys, or all values, of one head as packed panels. */
// @ts-ignore: decorator
@inline
export function panelBytes(sequence: i32, headDim: i32): usize {
  const blocks = (sequence + BLOCK_KV - 1) / BLOCK_KV;
  return <usize>(blocks * BLOCK_KV) * <usize>padded(headDim) * 4;
}

/** Bytes that attentionForward and attentionBackward may write, whichever needs more. */
export function attentionWorkspace(
  batch: i32,
  heads: i32,
  kvHeads: i32,
  sequence: i32,
  headDim: i32,
): usize {
  const blocks = 2 * SCORE_BYTES + 4 * BLOCK_Q * 4 + TILE_BYTES;
  const queries = 2 * BLOCK_Q * padded(headDim) * 4;
  return <usize>(blocks + queries) + 3 * panelBytes(sequence, headDim);
}

/** Packs x[sequence, headDim] as the B of scores = q x^T: k is headDim, panels of keys. */
export function packKeys(target: usize, x: usize, stride: usize, sequence: i32, headDim: i32): void {
  packB(true, target, x, stride, headDim, sequence);
}

/** Packs x[sequence, headDim], block of keys by block, as the B of out = p x: k is the keys. */
export function packValues(target: usize, x: usize, stride: usize, sequence: i32, headDim: i32): void {
  for (let j = 0; j < sequence; j += BLOCK_KV) {
    packB(false, target, x, stride, min(BLOCK_KV, sequence - j), headDim);
    target += <usize>(BLOCK_KV * padded(headDim)) << 2;
    x += BLOCK_KV * stride;
  }
}
