/**
 * The register tile of matrix multiplication: TILE_ROWS x TILE_COLUMNS sums stay in registers while
 * k runs (Goto and van de Geijn 2008, section 4). B comes packed, TILE_COLUMNS floats for each k;
 * both forms below pass one tile of rows over all panels of B. 4 x 8, once round the loop for each k,
 * is what V8 keeps in its 15 vector registers: it moves all loads of a loop's body before the
 * arithmetic, so that larger tiles and unrolled loops spill (6 x 8 ran at half the speed).
 */

import { loadPartial, multiplyAdd, storePartial } from "./vector-math";

export const TILE_ROWS: i32 = 4;
export const TILE_COLUMNS: i32 = 8;

/**
 * C[rows, n] = alpha * A B + beta * C for at most TILE_ROWS rows of A as stored, each with its k
 * side by side. Strides are bytes from row to row.
 */
export function multiplyRows(
  a: usize,
  aStride: usize,
  panels: usize,
  panelBytes: usize,
  rows: i32,
  n: i32,
  k: i32,
  alpha: f32,
  beta: f32,
  c: usize,
  cStride: usize,
  spill: usize,
): void {
  const a1 = a + select<usize>(aStride, 0, rows > 1);
  const a2 = a1 + select<usize>(aStride, 0, rows > 2);
  const a3 = a2 + select<usize>(aStride, 0, rows > 3);
  for (let j = 0; j < n; j += TILE_COLUMNS) {
    let b = panels;
    let c00 = f32x4.splat(0);
    let c01 = f32x4.splat(0);
    let c10 = f32x4.splat(0);
    let c11 = f32x4.splat(0);
    let c20 = f32x4.splat(0);
    let c21 = f32x4.splat(0);
    let c30 = f32x4.splat(0);
    let c31 = f32x4.splat(0);
    let row0 = a;
    let row1 = a1;
    let row2 = a2;
    let row3 = a3;
    for (const end = a + ((<usize>k) << 2); row0 != end; b += TILE_COLUMNS * 4) {
      const b0 = v128.load(b);
      const b1 = v128.load(b, 16);
      let x = v128.load32_splat(row0);
      c00 = multiplyAdd(x, b0, c00);
      c01 = multiplyAdd(x, b1, c01);
      x = v128.load32_splat(row1);
      c10 = multiplyAdd(x, b0, c10);
      c11 = multiplyAdd(x, b1, c11);
      x = v128.load32_splat(row2);
      c20 = multiplyAdd(x, b0, c20);
      c21 = multiplyAdd(x, b1, c21);
      x = v128.load32_splat(row3);
      c30 = multiplyAdd(x, b0, c30);
      c31 = multiplyAdd(x, b1, c31);
      row0 += 4;
      row1 += 4;
      row2 += 4;
      row3 += 4;
    }
    if (n - j < TILE_COLUMNS || rows < TILE_ROWS) {
      const columns = min(TILE_COLUMNS, n - j);
      loadEdge(spill, c, cStride, rows, columns, beta);
      storeRow(spill, c00, c01, alpha, beta);
      storeRow(spill + 32, c10, c11, alpha, beta);
      storeRow(spill + 64, c20, c21, alpha, beta);
      storeRow(spill + 96, c30, c31, alpha, beta);
      storeEdge(spill, c, cStride, rows, columns);
    } else {
      storeRow(c, c00, c01, alpha, beta);
      storeRow(c + cStride, c10, c11, alpha, beta);
      storeRow(c + 2 * cStride, c20, c21, alpha, beta);
      storeRow(c + 3 * cStride, c30, c31, alpha, beta);
    }
    panels += panelBytes;
    c += TILE_COLUMNS * 4;
  }
}

/**
 * As multiplyRows, but the rows of A are neighbours and `aStride` leads from one k to the next: a
 * packed A, or a transposed one in place. Reads TILE_ROWS neighbours whatever `rows` is.
 */
export function multiplyColumns(
  a: usize,
  aStride: usize,
  panels: usize,
  panelBytes: usize,
  rows: i32,
  n: i32,
  k: i32,
  alpha: f32,
  beta: f32,
  c: usize,
  cStride: usize,
  spill: usize,
): void {
  for (let j = 0; j < n; j += TILE_COLUMNS) {
    let b = panels;
    let at = a;
    let c00 = f32x4.splat(0);
    let c01 = f32x4.splat(0);
    let c10 = f32x4.splat(0);
    let c11 = f32x4.splat(0);
    let c20 = f32x4.splat(0);
    let c21 = f32x4.splat(0);
    let c30 = f32x4.splat(0);
    let c31 = f32x4.splat(0);
    for (let p = 0; p < k; p++) {
      const b0 = v128.load(b);
      const b1 = v128.load(b, 16);
      let x = v128.load32_splat(at, 0);
      c00 = multiplyAdd(x, b0, c00);
      c01 = multiplyAdd(x, b1, c01);
      x = v128.load32_splat(at, 4);
      c10 = multiplyAdd(x, b0, c10);
      c11 = multiplyAdd(x, b1, c11);
      x = v128.load32_splat(at, 8);
      c20 = multiplyAdd(x, b0, c20);
      c21 = multiplyAdd(x, b1, c21);
      x = v128.load32_splat(at, 12);
      c30 = multiplyAdd(x, b0, c30);
      c31 = multiplyAdd(x, b1, c31);
      at += aStride;
      b += TILE_COLUMNS * 4;
    }
    if (n - j < TILE_COLUMNS || rows < TILE_ROWS) {
      const columns = min(TILE_COLUMNS, n - j);
      loadEdge(spill, c, cStride, rows, columns, beta);
      storeRow(spill, c00, c01, alpha, beta);
      storeRow(spill + 32, c10, c11, alpha, beta);
      storeRow(spill + 64, c20, c21, alpha, beta);
      storeRow(spill + 96, c30, c31, alpha, beta);
      storeEdge(spill, c, cStride, rows, columns);
    } else {
      storeRow(c, c00, c01, alpha, beta);
      storeRow(c + cStride, c10, c11, alpha, beta);
      storeRow(c + 2 * cStride, c20, c21, alpha, beta);
      storeRow(c + 3 * cStride, c30, c31, alpha, beta);
    }
    panels += panelBytes;
    c += TILE_COLUMNS * 4;
  }
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
