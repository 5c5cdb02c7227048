/**
 * The register tile where multiply and add are one instruction: 6 x 8 sums. Such an instruction takes
 * four cycles and two begin in each, so that eight sums only just keep the processor busy, if nothing
 * ever waits; twelve do with ease, and need three loads for four of them less. Sums of an element are
 * made in the order of `multiplyRows`, and have the same bits.
 *
 * V8 moves all loads of a basic block before its arithmetic, and has 15 vector registers: twelve sums, two
 * of B and one of A fill them. So each row is a block of its own, ended by a test that is never true
 * (pointers to floats are multiples of 4) but might, for all that V8 knows, leave the loop.
 */

import { storeRow, TILE_COLUMNS } from "./gemm-tile-store";
import { multiplyAdd } from "./vector-math";

export const TALL_ROWS: i32 = 6;
/** Bytes of a panel of B for each k. */
const PANEL_STEP: usize = TILE_COLUMNS * 4;

/** C[TALL_ROWS, n] = alpha * A B + beta * C for whole panels: n is a multiple of TILE_COLUMNS. */
export function multiplyTallRows(
  a: usize,
  aStride: usize,
  panels: usize,
  panelBytes: usize,
  n: i32,
  k: i32,
  alpha: f32,
  beta: f32,
  c: usize,
  cStride: usize,
): void {
  const a1 = a + aStride;
  const a2 = a1 + aStride;
  const a3 = a2 + aStride;
  const a4 = a3 + aStride;
  const a5 = a4 + aStride;
  for (let j = 0; j < n; j += TILE_COLUMNS) {
    let b = panels;
    const end = panels + <usize>(k - 1) * PANEL_STEP;
    const beforeEnd = end - PANEL_STEP;
    let c00 = f32x4.splat(0);
    let c01 = f32x4.splat(0);
    let c10 = f32x4.splat(0);
    let c11 = f32x4.splat(0);
    let c20 = f32x4.splat(0);
    let c21 = f32x4.splat(0);
    let c30 = f32x4.splat(0);
    let c31 = f32x4.splat(0);
    let c40 = f32x4.splat(0);
    let c41 = f32x4.splat(0);
    let c50 = f32x4.splat(0);
    let c51 = f32x4.splat(0);
    let row0 = a;
    let row1 = a1;
    let row2 = a2;
    let row3 = a3;
    let row4 = a4;
    let row5 = a5;
    while (true) {
      let b0 = v128.load(b);
      let b1 = v128.load(b, 16);
      let x = v128.load32_splat(row0);
      c00 = multiplyAdd(x, b0, c00);
      c01 = multiplyAdd(x, b1, c01);
      if (b == 1) break;
      x = v128.load32_splat(row1);
      c10 = multiplyAdd(x, b0, c10);
      c11 = multiplyAdd(x, b1, c11);
      if (b == 2) break;
      x = v128.load32_splat(row2);
      c20 = multiplyAdd(x, b0, c20);
      c21 = multiplyAdd(x, b1, c21);
      if (b == 3) break;
      x = v128.load32_splat(row3);
      c30 = multiplyAdd(x, b0, c30);
      c31 = multiplyAdd(x, b1, c31);
      if (b == 5) break;
      x = v128.load32_splat(row4);
      c40 = multiplyAdd(x, b0, c40);
      c41 = multiplyAdd(x, b1, c41);
      if (b == 6) break;
      x = v128.load32_splat(row5);
      c50 = multiplyAdd(x, b0, c50);
      c51 = multiplyAdd(x, b1, c51);
      if (b == end) break;
      b0 = v128.load(b, 32);
      b1 = v128.load(b, 48);
      x = v128.load32_splat(row0, 4);
      c00 = multiplyAdd(x, b0, c00);
      c01 = multiplyAdd(x, b1, c01);
      if (b == 7) break;
      x = v128.load32_splat(row1, 4);
      c10 = multiplyAdd(x, b0, c10);
      c11 = multiplyAdd(x, b1, c11);
      if (b == 9) break;
      x = v128.load32_splat(row2, 4);
      c20 = multiplyAdd(x, b0, c20);
      c21 = multiplyAdd(x, b1, c21);
      if (b == 10) break;
      x = v128.load32_splat(row3, 4);
      c30 = multiplyAdd(x, b0, c30);
      c31 = multiplyAdd(x, b1, c31);
      if (b == 11) break;
      x = v128.load32_splat(row4, 4);
      c40 = multiplyAdd(x, b0, c40);
      c41 = multiplyAdd(x, b1, c41);
      if (b == 13) break;
      x = v128.load32_splat(row5, 4);
      c50 = multiplyAdd(x, b0, c50);
      c51 = multiplyAdd(x, b1, c51);
      if (b == beforeEnd) break;
      row0 += 8;
      row1 += 8;
      row2 += 8;
      row3 += 8;
      row4 += 8;
      row5 += 8;
      b += 2 * PANEL_STEP;
    }
    storeRow(c, c00, c01, alpha, beta);
    storeRow(c + cStride, c10, c11, alpha, beta);
    storeRow(c + 2 * cStride, c20, c21, alpha, beta);
    storeRow(c + 3 * cStride, c30, c31, alpha, beta);
    storeRow(c + 4 * cStride, c40, c41, alpha, beta);
    storeRow(c + 5 * cStride, c50, c51, alpha, beta);
    panels += panelBytes;
    c += PANEL_STEP;
  }
}

/** As multiplyTallRows, but the rows of A are neighbours and `aStride` leads from one k to the next. */
export function multiplyTallColumns(
  a: usize,
  aStride: usize,
  panels: usize,
  panelBytes: usize,
  n: i32,
  k: i32,
  alpha: f32,
  beta: f32,
  c: usize,
  cStride: usize,
): void {
  for (let j = 0; j < n; j += TILE_COLUMNS) {
    let b = panels;
    const end = panels + <usize>(k - 1) * PANEL_STEP;
    const beforeEnd = end - PANEL_STEP;
    let c00 = f32x4.splat(0);
    let c01 = f32x4.splat(0);
    let c10 = f32x4.splat(0);
    let c11 = f32x4.splat(0);
    let c20 = f32x4.splat(0);
    let c21 = f32x4.splat(0);
    let c30 = f32x4.splat(0);
    let c31 = f32x4.splat(0);
    let c40 = f32x4.splat(0);
    let c41 = f32x4.splat(0);
    let c50 = f32x4.splat(0);
    let c51 = f32x4.splat(0);
    let at = a;
    while (true) {
      let b0 = v128.load(b);
      let b1 = v128.load(b, 16);
      let x = v128.load32_splat(at);
      c00 = multiplyAdd(x, b0, c00);
      c01 = multiplyAdd(x, b1, c01);
      if (b == 1) break;
      x = v128.load32_splat(at, 4);
      c10 = multiplyAdd(x, b0, c10);
      c11 = multiplyAdd(x, b1, c11);
      if (b == 2) break;
      x = v128.load32_splat(at, 8);
      c20 = multiplyAdd(x, b0, c20);
      c21 = multiplyAdd(x, b1, c21);
      if (b == 3) break;
      x = v128.load32_splat(at, 12);
      c30 = multiplyAdd(x, b0, c30);
      c31 = multiplyAdd(x, b1, c31);
      if (b == 5) break;
      x = v128.load32_splat(at, 16);
      c40 = multiplyAdd(x, b0, c40);
      c41 = multiplyAdd(x, b1, c41);
      if (b == 6) break;
      x = v128.load32_splat(at, 20);
      c50 = multiplyAdd(x, b0, c50);
      c51 = multiplyAdd(x, b1, c51);
      at += aStride;
      if (b == end) break;
      b0 = v128.load(b, 32);
      b1 = v128.load(b, 48);
      x = v128.load32_splat(at);
      c00 = multiplyAdd(x, b0, c00);
      c01 = multiplyAdd(x, b1, c01);
      if (b == 7) break;
      x = v128.load32_splat(at, 4);
      c10 = multiplyAdd(x, b0, c10);
      c11 = multiplyAdd(x, b1, c11);
      if (b == 9) break;
      x = v128.load32_splat(at, 8);
      c20 = multiplyAdd(x, b0, c20);
      c21 = multiplyAdd(x, b1, c21);
      if (b == 10) break;
      x = v128.load32_splat(at, 12);
      c30 = multiplyAdd(x, b0, c30);
      c31 = multiplyAdd(x, b1, c31);
      if (b == 11) break;
      x = v128.load32_splat(at, 16);
      c40 = multiplyAdd(x, b0, c40);
      c41 = multiplyAdd(x, b1, c41);
      if (b == 13) break;
      x = v128.load32_splat(at, 20);
      c50 = multiplyAdd(x, b0, c50);
      c51 = multiplyAdd(x, b1, c51);
      at += aStride;
      if (b == beforeEnd) break;
      b += 2 * PANEL_STEP;
    }
    storeRow(c, c00, c01, alpha, beta);
    storeRow(c + cStride, c10, c11, alpha, beta);
    storeRow(c + 2 * cStride, c20, c21, alpha, beta);
    storeRow(c + 3 * cStride, c30, c31, alpha, beta);
    storeRow(c + 4 * cStride, c40, c41, alpha, beta);
    storeRow(c + 5 * cStride, c50, c51, alpha, beta);
    panels += panelBytes;
    c += PANEL_STEP;
  }
}
