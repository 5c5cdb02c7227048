/**
 * The register tile of matrix multiplication: TILE_ROWS x TILE_COLUMNS sums stay in registers while
 * k runs (Goto and van de Geijn 2008, section 4). B comes packed, TILE_COLUMNS floats for each k;
 * both forms below pass one tile of rows over all panels of B.
 *
 * V8 has 15 vector registers and moves all loads of a basic block before its arithmetic: 4 x 8 sums, and
 * what one k needs, just fit. The loop goes four k a round, each a block of its own that may be the
 * last: so its pointers move less often, and the processor foresees more loops' ends.
 */

import { storeTile, TILE_COLUMNS, TILE_ROWS } from "./gemm-tile-store";
import { multiplyAdd } from "./vector-math";

/** Bytes of a panel of B for each k. */
const STEP: usize = TILE_COLUMNS * 4;

/**
 * C[rows, n] = alpha * A B + beta * C for at most TILE_ROWS rows of A as stored, each with its k
 * side by side, k at least 1. Strides are bytes from row to row.
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
    // Where the round that holds the last k begins, if that is its first, second, third or fourth.
    const first = panels + <usize>(k - 1) * STEP;
    const second = first - STEP;
    const third = second - STEP;
    const fourth = third - STEP;
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
    while (true) {
      let b0 = v128.load(b);
      let b1 = v128.load(b, 16);
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
      if (b == first) break;
      b0 = v128.load(b, 32);
      b1 = v128.load(b, 48);
      x = v128.load32_splat(row0, 4);
      c00 = multiplyAdd(x, b0, c00);
      c01 = multiplyAdd(x, b1, c01);
      x = v128.load32_splat(row1, 4);
      c10 = multiplyAdd(x, b0, c10);
      c11 = multiplyAdd(x, b1, c11);
      x = v128.load32_splat(row2, 4);
      c20 = multiplyAdd(x, b0, c20);
      c21 = multiplyAdd(x, b1, c21);
      x = v128.load32_splat(row3, 4);
      c30 = multiplyAdd(x, b0, c30);
      c31 = multiplyAdd(x, b1, c31);
      if (b == second) break;
      b0 = v128.load(b, 64);
      b1 = v128.load(b, 80);
      x = v128.load32_splat(row0, 8);
      c00 = multiplyAdd(x, b0, c00);
      c01 = multiplyAdd(x, b1, c01);
      x = v128.load32_splat(row1, 8);
      c10 = multiplyAdd(x, b0, c10);
      c11 = multiplyAdd(x, b1, c11);
      x = v128.load32_splat(row2, 8);
      c20 = multiplyAdd(x, b0, c20);
      c21 = multiplyAdd(x, b1, c21);
      x = v128.load32_splat(row3, 8);
      c30 = multiplyAdd(x, b0, c30);
      c31 = multiplyAdd(x, b1, c31);
      if (b == third) break;
      b0 = v128.load(b, 96);
      b1 = v128.load(b, 112);
      x = v128.load32_splat(row0, 12);
      c00 = multiplyAdd(x, b0, c00);
      c01 = multiplyAdd(x, b1, c01);
      x = v128.load32_splat(row1, 12);
      c10 = multiplyAdd(x, b0, c10);
      c11 = multiplyAdd(x, b1, c11);
      x = v128.load32_splat(row2, 12);
      c20 = multiplyAdd(x, b0, c20);
      c21 = multiplyAdd(x, b1, c21);
      x = v128.load32_splat(row3, 12);
      c30 = multiplyAdd(x, b0, c30);
      c31 = multiplyAdd(x, b1, c31);
      if (b == fourth) break;
      row0 += 16;
      row1 += 16;
      row2 += 16;
      row3 += 16;
      b += 4 * STEP;
    }
    storeTile(
      c,
      cStride,
      rows,
      n - j,
      c00,
      c01,
      c10,
      c11,
      c20,
      c21,
      c30,
      c31,
      alpha,
      beta,
      spill,
    );
    panels += panelBytes;
    c += STEP;
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
    // Where the round that holds the last k begins, if that is its first, second, third or fourth.
    const first = panels + <usize>(k - 1) * STEP;
    const second = first - STEP;
    const third = second - STEP;
    const fourth = third - STEP;
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
    while (true) {
      let b0 = v128.load(b);
      let b1 = v128.load(b, 16);
      let x = v128.load32_splat(at);
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
      if (b == first) break;
      at += aStride;
      b0 = v128.load(b, 32);
      b1 = v128.load(b, 48);
      x = v128.load32_splat(at);
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
      if (b == second) break;
      at += aStride;
      b0 = v128.load(b, 64);
      b1 = v128.load(b, 80);
      x = v128.load32_splat(at);
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
      if (b == third) break;
      at += aStride;
      b0 = v128.load(b, 96);
      b1 = v128.load(b, 112);
      x = v128.load32_splat(at);
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
      if (b == fourth) break;
      at += aStride;
      b += 4 * STEP;
    }
    storeTile(
      c,
      cStride,
      rows,
      n - j,
      c00,
      c01,
      c10,
      c11,
      c20,
      c21,
      c30,
      c31,
      alpha,
      beta,
      spill,
    );
    panels += panelBytes;
    c += STEP;
  }
}
