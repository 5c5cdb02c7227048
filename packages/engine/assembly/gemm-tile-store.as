/**
 * The shape of the register tile, and how its sums reach C: whole tiles directly, cut ones by way of
 * a spill tile.
 */

import { loadPartial, storePartial } from "./vector-math";

export const TILE_ROWS: i32 = 4;
export const TILE_COLUMNS: i32 = 8;

/** C[rows, columns] = alpha * tile + beta * C. `spill` holds a tile. */
// @ts-ignore: decorator
@inline
export function storeTile(
  c: usize,
  cStride: usize,
  rows: i32,
  columns: i32,
  c00: v128,
  c01: v128,
  c10: v128,
  c11: v128,
  c20: v128,
  c21: v128,
  c30: v128,
  c31: v128,
  alpha: f32,
  beta: f32,
  spill: usize,
): void {
  const isCut = columns < TILE_COLUMNS || rows < TILE_ROWS;
  if (isCut) loadEdge(spill, c, cStride, rows, min(TILE_COLUMNS, columns), beta);
  const at = isCut ? spill : c;
  const step: usize = isCut ? TILE_COLUMNS * 4 : cStride;
  storeRow(at, c00, c01, alpha, beta);
  storeRow(at + step, c10, c11, alpha, beta);
  storeRow(at + 2 * step, c20, c21, alpha, beta);
  storeRow(at + 3 * step, c30, c31, alpha, beta);
  if (isCut) storeEdge(spill, c, cStride, rows, min(TILE_COLUMNS, columns));
}

/** c[8] = alpha * x + beta * c. */
// @ts-ignore: decorator
@inline
export function storeRow(c: usize, x0: v128, x1: v128, alpha: f32, beta: f32): void {
  const factor = f32x4.splat(alpha);
  let y0 = f32x4.mul(factor, x0);
  let y1 = f32x4.mul(factor, x1);
  if (beta != 0) {
    const keep = f32x4.splat(beta);
    y0 = f32x4.add(y0, f32x4.mul(keep, v128.load(c)));
    y1 = f32x4.add(y1, f32x4.mul(keep, v128.load(c, 16)));
  }
  v128.store(c, y0);
  v128.store(c, y1, 16);
}

/** Brings a partial tile of C into the spill tile, where whole vectors can be read and written. */
function loadEdge(
  spill: usize,
  c: usize,
  cStride: usize,
  rows: i32,
  columns: i32,
  beta: f32,
): void {
  if (beta == 0) return;
  for (let row = 0; row < rows; row++) {
    copyPart(spill, c, columns);
    spill += TILE_COLUMNS * 4;
    c += cStride;
  }
}

function storeEdge(spill: usize, c: usize, cStride: usize, rows: i32, columns: i32): void {
  for (let row = 0; row < rows; row++) {
    copyPart(c, spill, columns);
    spill += TILE_COLUMNS * 4;
    c += cStride;
  }
}

/** Copies `columns` floats, at most TILE_COLUMNS: too few for memory.copy to be worth its call. */
function copyPart(target: usize, source: usize, columns: i32): void {
  let left = columns;
  for (; left >= 4; left -= 4) {
    v128.store(target, v128.load(source));
    target += 16;
    source += 16;
  }
  if (left > 0) storePartial(target, loadPartial(source, left), left);
}
