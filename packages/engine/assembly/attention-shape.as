/**
 * What attention forward and backward share: the layout of a row of qkv, the block sizes and the
 * packing of keys and values. A row is the q heads, then the k heads, then the v heads; query head h
 * reads key-value head h / (heads / kvHeads) (Ainslie et al. 2023). Positions at which blocks begin
 * are multiples of the tile's rows, so that a tile of queries sees all keys of a block but its own.
 */

import { packB } from "./gemm-pack";
import { TILE_COLUMNS, TILE_ROWS } from "./gemm-tile-store";
import { TILE_BYTES } from "./gemm";

/** Keys of a block forward, where four rows of scores exist at a time. */
export const FORWARD_KEYS: i32 = 512;
/** Queries and keys of a block backward: two blocks of scores stay in the first-level cache. */
export const BACKWARD_QUERIES: i32 = 64;
export const BACKWARD_KEYS: i32 = 64;

/** Bytes of four rows of scores forward. */
export const STRIP_BYTES: i32 = TILE_ROWS * FORWARD_KEYS * 4;
/** Bytes of a block of scores backward, and of what a tile may read behind it. */
export const SCORE_BYTES: i32 = BACKWARD_QUERIES * BACKWARD_KEYS * 4 + 64;

/** `size` rounded up to whole panels. */
// @ts-ignore: decorator
@inline
export function padded(size: i32): i32 {
  return (size + TILE_COLUMNS - 1) & -TILE_COLUMNS;
}

/** Bytes of the packed keys, or values, of one head. */
// @ts-ignore: decorator
@inline
export function packedBytes(sequence: i32, headDim: i32): usize {
  return <usize>padded(sequence) * <usize>padded(headDim) * 4;
}

/** Bytes that attendForward and attendBackward may write, whichever needs more. */
export function attentionWorkspace(
  batch: i32,
  heads: i32,
  kvHeads: i32,
  sequence: i32,
  headDim: i32,
): usize {
  const queries = 2 * BACKWARD_QUERIES * padded(headDim) * 4;
  const blocks = max(STRIP_BYTES, 2 * SCORE_BYTES + queries) + BACKWARD_QUERIES * 4 + TILE_BYTES;
  return <usize>blocks + 3 * packedBytes(sequence, headDim);
}

/** Packs x[sequence, headDim] as the B of q x^T: panels of keys, headDim deep. */
export function packKeys(
  target: usize,
  x: usize,
  stride: usize,
  sequence: i32,
  headDim: i32,
): void {
  packB(true, target, x, stride, headDim, sequence);
}

/** Packs x[sequence, headDim] as the B of p x: for each block of keys, panels of columns. */
export function packValues(
  target: usize,
  x: usize,
  stride: usize,
  sequence: i32,
  headDim: i32,
  block: i32,
): void {
  for (let j = 0; j < sequence; j += block) {
    packB(false, target, x, stride, min(block, sequence - j), headDim);
    target += (<usize>(block * padded(headDim))) << 2;
    x += block * stride;
  }
}
