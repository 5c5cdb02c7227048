/**
 * Matrix multiplication in all transposes, blocked for the caches (Goto and van de Geijn,
 * "Anatomy of High-Performance Matrix Multiplication", 2008): a block of op(B) is packed once and
 * stays in the second-level cache while row tiles of A pass over it.
 */

import { packB, packTransposedA } from "./gemm-pack";
import { multiplyTallColumns, multiplyTallRows, TALL_ROWS } from "./gemm-tall-tile";
import { multiplyColumns, multiplyRows } from "./gemm-tile";
import { TILE_COLUMNS, TILE_ROWS } from "./gemm-tile-store";

/** Greatest depth of a block. */
const BLOCK_K: i32 = 256;
/** Greatest width of a packed block of B: with BLOCK_K 0.8 MiB. */
const BLOCK_N: i32 = 768;
/** Greatest number of rows of A that pass over a block of B: with BLOCK_K 0.3 MiB. */
const BLOCK_M: i32 = 256;
/** Floats of B that stay in the first-level cache while BLOCK_M rows of A pass: 24 KiB. */
const STRIP: i32 = 6144;

/** Rows of a block of A are a multiple, so that only the last block is not of whole tiles. */
const ROW_STEP: i32 = ASC_FEATURE_RELAXED_SIMD ? 2 * TALL_ROWS : TILE_ROWS;

export const TILE_BYTES: i32 = TILE_ROWS * TILE_COLUMNS * 4;

/** Splits `size` into equal blocks of at most `limit`, a multiple of `step` each. */
function blockSize(size: i32, limit: i32, step: i32): i32 {
  const blocks = (size + limit - 1) / limit;
  const block = (size + blocks - 1) / blocks;
  return ((block + step - 1) / step) * step;
}

// @ts-ignore: decorator
@inline
function roundUp(size: i32, step: i32): i32 {
  return ((size + step - 1) / step) * step;
}

/** Bytes of packing space that gemm(m, n, k) may write. */
export function gemmWorkspace(m: i32, n: i32, k: i32): i32 {
  if (m <= 0 || n <= 0 || k <= 0) return 0;
  const kc = min(k, BLOCK_K);
  const packed =
    kc * (roundUp(min(n, BLOCK_N), TILE_COLUMNS) + roundUp(min(m, BLOCK_M), ROW_STEP) + TILE_ROWS);
  return (packed << 2) + TILE_BYTES;
}

/** Row-major C[m, n] = alpha * op(A)[m, k] op(B)[k, n] + beta * C; beta 0 does not read C. */
export function gemm(
  transA: bool,
  transB: bool,
  m: i32,
  n: i32,
  k: i32,
  alpha: f32,
  a: usize,
  lda: i32,
  b: usize,
  ldb: i32,
  beta: f32,
  c: usize,
  ldc: i32,
  workspace: usize,
): void {
  if (m <= 0 || n <= 0) return;
  const aStride = (<usize>lda) << 2;
  const bStride = (<usize>ldb) << 2;
  const cStride = (<usize>ldc) << 2;
  if (k <= 0 || alpha == 0) {
    scaleRows(m, n, beta, c, cStride);
    return;
  }
  const blockK = blockSize(k, BLOCK_K, 1);
  const blockN = blockSize(n, BLOCK_N, TILE_COLUMNS);
  const blockM = blockSize(m, BLOCK_M, ROW_STEP);
  const spill = workspace;
  const panels = spill + TILE_BYTES;
  const packedA = panels + ((<usize>(blockK * roundUp(min(n, blockN), TILE_COLUMNS))) << 2);
  for (let p = 0; p < k; p += blockK) {
    const kc = min(blockK, k - p);
    const panelBytes = (<usize>(kc * TILE_COLUMNS)) << 2;
    const strip = max(TILE_COLUMNS, (STRIP / kc) & -TILE_COLUMNS);
    const keep: f32 = p == 0 ? beta : 1;
    for (let j = 0; j < n; j += blockN) {
      const nc = min(blockN, n - j);
      const origin = transB
        ? b + <usize>j * bStride + ((<usize>p) << 2)
        : b + <usize>p * bStride + ((<usize>j) << 2);
      packB(transB, panels, origin, bStride, kc, nc);
      for (let i = 0; i < m; i += blockM) {
        const mc = min(blockM, m - i);
        if (transA)
          packTransposedA(packedA, a + <usize>p * aStride + ((<usize>i) << 2), aStride, kc, mc);
        const rows = a + <usize>i * aStride + ((<usize>p) << 2);
        const target = c + <usize>i * cStride + ((<usize>j) << 2);
        for (let s = 0; s < nc; s += strip) {
          const columns = min(strip, nc - s);
          const panel = panels + ((<usize>(s * kc)) << 2);
          const at = target + ((<usize>s) << 2);
          if (transA) {
            multiplyTransposedPanels(
              mc,
              columns,
              kc,
              alpha,
              packedA,
              panel,
              panelBytes,
              keep,
              at,
              cStride,
              spill,
            );
          } else {
            multiplyPanels(
              mc,
              columns,
              kc,
              alpha,
              rows,
              aStride,
              panel,
              panelBytes,
              keep,
              at,
              cStride,
              spill,
            );
          }
        }
      }
    }
  }
}

/**
 * C[m, n] = alpha * A B + beta * C: A as stored, with rows of contiguous k; B packed with a depth of
 * at least k, `panelBytes` from one panel to the next. Strides are bytes.
 */
function multiplyPanels(
  m: i32,
  n: i32,
  k: i32,
  alpha: f32,
  a: usize,
  aStride: usize,
  panels: usize,
  panelBytes: usize,
  beta: f32,
  c: usize,
  cStride: usize,
  spill: usize,
): void {
  let i: i32 = 0;
  if (ASC_FEATURE_RELAXED_SIMD) {
    const whole = n & -TILE_COLUMNS;
    const rest = n - whole;
    const last = panels + <usize>(whole / TILE_COLUMNS) * panelBytes;
    for (; i + TALL_ROWS <= m; i += TALL_ROWS) {
      multiplyTallRows(a, aStride, panels, panelBytes, whole, k, alpha, beta, c, cStride);
      for (let row = 0; rest > 0 && row < TALL_ROWS; row += TILE_ROWS) {
        const from = a + <usize>row * aStride;
        const edge = c + <usize>row * cStride + ((<usize>whole) << 2);
        const rows = min(TILE_ROWS, TALL_ROWS - row);
        multiplyRows(from, aStride, last, 0, rows, rest, k, alpha, beta, edge, cStride, spill);
      }
      a += TALL_ROWS * aStride;
      c += TALL_ROWS * cStride;
    }
  }
  for (; i < m; i += TILE_ROWS) {
    const rows = min(TILE_ROWS, m - i);
    multiplyRows(a, aStride, panels, panelBytes, rows, n, k, alpha, beta, c, cStride, spill);
    a += TILE_ROWS * aStride;
    c += TILE_ROWS * cStride;
  }
}

/** C[m, n] = alpha * transpose(A) B + beta * C for an A [k, m] that is packed, too. */
function multiplyTransposedPanels(
  m: i32,
  n: i32,
  k: i32,
  alpha: f32,
  a: usize,
  panels: usize,
  panelBytes: usize,
  beta: f32,
  c: usize,
  cStride: usize,
  spill: usize,
): void {
  let i: i32 = 0;
  if (ASC_FEATURE_RELAXED_SIMD) {
    const whole = n & -TILE_COLUMNS;
    const rest = n - whole;
    const last = panels + <usize>(whole / TILE_COLUMNS) * panelBytes;
    const step: usize = TALL_ROWS * 4;
    for (; i + TALL_ROWS <= m; i += TALL_ROWS) {
      multiplyTallColumns(a, step, panels, panelBytes, whole, k, alpha, beta, c, cStride);
      for (let row = 0; rest > 0 && row < TALL_ROWS; row += TILE_ROWS) {
        const from = a + ((<usize>row) << 2);
        const edge = c + <usize>row * cStride + ((<usize>whole) << 2);
        const rows = min(TILE_ROWS, TALL_ROWS - row);
        multiplyColumns(from, step, last, 0, rows, rest, k, alpha, beta, edge, cStride, spill);
      }
      a += <usize>k * step;
      c += TALL_ROWS * cStride;
    }
  }
  const step: usize = TILE_ROWS * 4;
  for (; i < m; i += TILE_ROWS) {
    const rows = min(TILE_ROWS, m - i);
    multiplyColumns(a, step, panels, panelBytes, rows, n, k, alpha, beta, c, cStride, spill);
    a += <usize>k * step;
    c += TILE_ROWS * cStride;
  }
}

function scaleRows(m: i32, n: i32, beta: f32, c: usize, stride: usize): void {
  if (beta == 1) return;
  for (let i = 0; i < m; i++) {
    for (let j = 0; j < n; j++) {
      const at = c + ((<usize>j) << 2);
      store<f32>(at, beta == 0 ? 0 : beta * load<f32>(at));
    }
    c += stride;
  }
}
