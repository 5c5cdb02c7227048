/**
 * The part of a tensor that one rank holds: along one dim, some ranges of indices one after another.
 * A column-parallel product keeps ranges of columns (of queries, keys and values: three of them), a
 * row-parallel one a range of rows (Shoeybi et al., Megatron-LM, 2019, section 3).
 */
import { elements } from "./tensor.ts";

/** Consecutive indices of a dim. */
export interface Range {
  readonly start: number;
  readonly count: number;
}

/** What is kept along `dim`; all of the other dims. */
export interface Slice {
  readonly dim: number;
  readonly ranges: readonly Range[];
}

/** Elements that lie together in the whole tensor and in the part: offsets into both. */
export interface Run {
  readonly whole: number;
  readonly part: number;
  readonly length: number;
}

/** The dims of the part. */
export function partDims(dims: readonly number[], slice: Slice | undefined): readonly number[] {
  if (slice === undefined) return dims;
  return dims.with(
    slice.dim,
    slice.ranges.reduce((sum, { count }) => sum + count, 0),
  );
}

/** The part in pieces that are contiguous in the whole, in the order of the part. */
export function runsOf(dims: readonly number[], slice: Slice | undefined): readonly Run[] {
  if (slice === undefined) return [{ whole: 0, part: 0, length: elements(dims) }];
  const outer = elements(dims.slice(0, slice.dim));
  const inner = elements(dims.slice(slice.dim + 1));
  const stride = dims[slice.dim]! * inner;
  const runs: Run[] = [];
  let part = 0;
  for (let o = 0; o < outer; o++) {
    for (const { start, count } of slice.ranges) {
      runs.push({ whole: o * stride + start * inner, part, length: count * inner });
      part += count * inner;
    }
  }
  return runs;
}
