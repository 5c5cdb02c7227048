/**
 * Packing: B (and a transposed A) is copied into slivers that the register tile reads in one
 * forward walk: `width` neighbours for each k, slivers one after the other, the last one padded
 * with zeros.
 */

import { TALL_ROWS } from "./gemm-tall-tile";
import { TILE_COLUMNS, TILE_ROWS } from "./gemm-tile-store";
import { loadPartial } from "./vector-math";

/** Packs op(B)[k, n] into panels; `stride` is B's row length in bytes. */
export function packB(
  transposed: bool,
  target: usize,
  b: usize,
  stride: usize,
  k: i32,
  n: i32,
): void {
  const panelBytes = (<usize>(k * TILE_COLUMNS)) << 2;
  let j: i32 = 0;
  if (!transposed) {
    for (; j + 2 * TILE_COLUMNS <= n; j += 2 * TILE_COLUMNS) {
      packTwoPanels(target, panelBytes, b + ((<usize>j) << 2), stride, k);
      target += 2 * panelBytes;
    }
  }
  for (; j < n; j += TILE_COLUMNS) {
    const columns = min(TILE_COLUMNS, n - j);
    if (transposed) packColumns(target, b + <usize>j * stride, stride, k, columns);
    else packRows(target, b + ((<usize>j) << 2), stride, k, columns, TILE_COLUMNS);
    target += panelBytes;
  }
}

/**
 * Packs A stored as [k, m] into panels of TILE_ROWS neighbours for each k; in the fused module into
 * panels of TALL_ROWS first, as many as m has.
 */
export function packTransposedA(target: usize, a: usize, stride: usize, k: i32, m: i32): void {
  const panelBytes = (<usize>(k * TILE_ROWS)) << 2;
  let i: i32 = 0;
  if (ASC_FEATURE_RELAXED_SIMD) {
    for (; i + TALL_ROWS <= m; i += TALL_ROWS) {
      packTallPanel(target, a + ((<usize>i) << 2), stride, k);
      target += (<usize>(k * TALL_ROWS)) << 2;
    }
  }
  for (; i + 4 * TILE_ROWS <= m; i += 4 * TILE_ROWS) {
    packFourPanels(target, panelBytes, a + ((<usize>i) << 2), stride, k);
    target += 4 * panelBytes;
  }
  for (; i < m; i += TILE_ROWS) {
    packRows(target, a + ((<usize>i) << 2), stride, k, min(TILE_ROWS, m - i), TILE_ROWS);
    target += panelBytes;
  }
}

/** 16 columns, a cache line of each row, to two panels of 8. */
function packTwoPanels(
  target: usize,
  panelBytes: usize,
  source: usize,
  stride: usize,
  k: i32,
): void {
  for (let p = 0; p < k; p++) {
    const second = target + panelBytes;
    v128.store(target, v128.load(source));
    v128.store(target, v128.load(source, 16), 16);
    v128.store(second, v128.load(source, 32));
    v128.store(second, v128.load(source, 48), 16);
    source += stride;
    target += 32;
  }
}

/** Six columns to a panel. */
function packTallPanel(target: usize, source: usize, stride: usize, k: i32): void {
  for (let p = 0; p < k; p++) {
    v128.store(target, v128.load(source));
    store<u64>(target, load<u64>(source, 16), 16);
    source += stride;
    target += TALL_ROWS * 4;
  }
}

/** 16 columns to four panels of 4. */
function packFourPanels(
  target: usize,
  panelBytes: usize,
  source: usize,
  stride: usize,
  k: i32,
): void {
  for (let p = 0; p < k; p++) {
    const second = target + panelBytes;
    const third = second + panelBytes;
    v128.store(target, v128.load(source));
    v128.store(second, v128.load(source, 16));
    v128.store(third, v128.load(source, 32));
    v128.store(third + panelBytes, v128.load(source, 48));
    source += stride;
    target += 16;
  }
}

/** Copies k rows of `columns` floats, each filled up with zeros to `width`, a multiple of 4. */
function packRows(
  target: usize,
  source: usize,
  stride: usize,
  k: i32,
  columns: i32,
  width: i32,
): void {
  for (let p = 0; p < k; p++) {
    for (let j = 0; j < width; j += 4) {
      const at = source + ((<usize>j) << 2);
      const left = columns - j;
      let x = f32x4.splat(0);
      if (left >= 4) x = v128.load(at);
      else if (left > 0) x = loadPartial(at, left);
      v128.store(target + ((<usize>j) << 2), x);
    }
    source += stride;
    target += (<usize>width) << 2;
  }
}

/** Transposes `columns` rows of k floats into k rows of TILE_COLUMNS. */
function packColumns(target: usize, source: usize, stride: usize, k: i32, columns: i32): void {
  for (let j = 0; j < TILE_COLUMNS; j += 4) {
    transpose4(target + ((<usize>j) << 2), source + <usize>j * stride, stride, k, columns - j);
  }
}

function transpose4(target: usize, source: usize, stride: usize, k: i32, rows: i32): void {
  const zero = f32x4.splat(0);
  const second = source + stride;
  const third = second + stride;
  const fourth = third + stride;
  const step = <usize>(TILE_COLUMNS << 2);
  let p: i32 = 0;
  for (; p < k; p += 4) {
    const left = k - p;
    const at = (<usize>p) << 2;
    let x0 = zero;
    let x1 = zero;
    let x2 = zero;
    let x3 = zero;
    if (left >= 4) {
      if (rows > 0) x0 = v128.load(source + at);
      if (rows > 1) x1 = v128.load(second + at);
      if (rows > 2) x2 = v128.load(third + at);
      if (rows > 3) x3 = v128.load(fourth + at);
    } else {
      if (rows > 0) x0 = loadPartial(source + at, left);
      if (rows > 1) x1 = loadPartial(second + at, left);
      if (rows > 2) x2 = loadPartial(third + at, left);
      if (rows > 3) x3 = loadPartial(fourth + at, left);
    }
    const low01 = i32x4.shuffle(x0, x1, 0, 4, 1, 5);
    const high01 = i32x4.shuffle(x0, x1, 2, 6, 3, 7);
    const low23 = i32x4.shuffle(x2, x3, 0, 4, 1, 5);
    const high23 = i32x4.shuffle(x2, x3, 2, 6, 3, 7);
    v128.store(target, i64x2.shuffle(low01, low23, 0, 2));
    if (left > 1) v128.store(target + step, i64x2.shuffle(low01, low23, 1, 3));
    if (left > 2) v128.store(target + 2 * step, i64x2.shuffle(high01, high23, 0, 2));
    if (left > 3) v128.store(target + 3 * step, i64x2.shuffle(high01, high23, 1, 3));
    target += 4 * step;
  }
}
