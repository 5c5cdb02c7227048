/**
 * A region is a box of a global tensor: where it starts and how far it goes in each dim. Layouts cut
 * tensors into regions, checkpoints store regions, and a resharding is the intersection of the two.
 */

/** A box of a tensor; both arrays have one entry per dim, none for a scalar. */
export interface Region {
  readonly start: readonly number[];
  readonly shape: readonly number[];
}

/** Elements of a shape; 1 of a scalar. */
export function elements(shape: readonly number[]): number {
  let count = 1;
  for (const dim of shape) count *= dim;
  return count;
}

/** What two regions share; undefined where that is nothing. */
export function intersectRegions(a: Region, b: Region): Region | undefined {
  const dims = a.start.length;
  const start = new Array<number>(dims);
  const shape = new Array<number>(dims);
  for (let dim = 0; dim < dims; dim++) {
    const from = Math.max(a.start[dim]!, b.start[dim]!);
    const to = Math.min(a.start[dim]! + a.shape[dim]!, b.start[dim]! + b.shape[dim]!);
    if (to <= from) return undefined;
    start[dim] = from;
    shape[dim] = to - from;
  }
  return { start, shape };
}

/**
 * The elements [from, to) of a tensor in row-major order as boxes, in that order: at most 2d − 1 of
 * them for d dims (the end of a row, whole rows, the beginning of a row, in every dim).
 */
export function flatRegions(shape: readonly number[], from: number, to: number): readonly Region[] {
  if (from >= to) return [];
  const [rows, ...rest] = shape;
  if (rows === undefined) return [{ start: [], shape: [] }];
  const row = elements(rest);
  const regions: Region[] = [];
  const partial = (index: number, first: number, end: number): void => {
    for (const inner of flatRegions(rest, first, end)) {
      regions.push({ start: [index, ...inner.start], shape: [1, ...inner.shape] });
    }
  };
  const firstRow = Math.floor(from / row);
  const lastRow = Math.floor(to / row);
  const head = from - firstRow * row;
  const tail = to - lastRow * row;
  if (firstRow === lastRow) {
    partial(firstRow, head, tail);
    return regions;
  }
  const whole = head === 0 ? firstRow : firstRow + 1;
  if (head > 0) partial(firstRow, head, row);
  if (lastRow > whole) {
    regions.push({ start: [whole, ...rest.map(() => 0)], shape: [lastRow - whole, ...rest] });
  }
  if (tail > 0) partial(lastRow, 0, tail);
  return regions;
}

/** A tensor, or a flat piece of one, in row-major memory. */
export interface RowMajor {
  readonly bytes: Uint8Array;
  /** Shape of the whole tensor, from which the strides follow. */
  readonly shape: readonly number[];
  /** Flat index of the element at the first byte; 0 unless only a piece is held. */
  readonly from: number;
}

/** Copies `source` to `target` from byte `at` on. */
type CopyBytes = (target: Uint8Array, at: number, source: Uint8Array) => void;

/**
 * Copies a box between two memories, run by run of what is contiguous in both.
 * `shape` is the box's; `sourceStart` and `targetStart` say where it lies in either tensor; `width` is
 * bytes per element; `copy` is there for those who have a faster one than `TypedArray.set`.
 */
export function copyRegion(
  source: RowMajor,
  sourceStart: readonly number[],
  target: RowMajor,
  targetStart: readonly number[],
  shape: readonly number[],
  width: number,
  copy: CopyBytes = (bytes, at, run) => bytes.set(run, at),
): void {
  if (elements(shape) === 0) return;
  // The last dims that the box fills in both tensors make one run together with the dim before them.
  let dim = shape.length - 1;
  let run = 1;
  while (dim >= 0) {
    run *= shape[dim]!;
    if (shape[dim] !== source.shape[dim] || shape[dim] !== target.shape[dim]) break;
    dim--;
  }
  const outer = Math.max(dim, 0);
  const sourceStrides = strides(source.shape);
  const targetStrides = strides(target.shape);
  const index = new Array<number>(outer).fill(0);
  let sourceAt = flatIndex(sourceStart, sourceStrides) - source.from;
  let targetAt = flatIndex(targetStart, targetStrides) - target.from;
  for (;;) {
    const bytes = source.bytes.subarray(sourceAt * width, (sourceAt + run) * width);
    copy(target.bytes, targetAt * width, bytes);
    let d = outer - 1;
    for (; d >= 0; d--) {
      sourceAt += sourceStrides[d]!;
      targetAt += targetStrides[d]!;
      index[d]!++;
      if (index[d]! < shape[d]!) break;
      sourceAt -= shape[d]! * sourceStrides[d]!;
      targetAt -= shape[d]! * targetStrides[d]!;
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

/**
 * The byte ranges of a box in a row-major tensor, ascending, neighbours joined: what must be read of a
 * file of which only the box is wanted.
 */
export function* regionRuns(
  shape: readonly number[],
  region: Region,
  width: number,
): Generator<{ readonly offset: number; readonly length: number }> {
  if (elements(region.shape) === 0) return;
  let dim = shape.length - 1;
  let run = width;
  while (dim >= 0) {
    run *= region.shape[dim]!;
    if (region.shape[dim] !== shape[dim]) break;
    dim--;
  }
  const outer = region.shape.slice(0, Math.max(dim, 0));
  const steps = strides(shape);
  const rows = elements(outer);
  const first = flatIndex(region.start, steps);
  for (let row = 0; row < rows; row++) {
    let at = first;
    let rest = row;
    for (let d = outer.length - 1; d >= 0; d--) {
      at += (rest % outer[d]!) * steps[d]!;
      rest = Math.floor(rest / outer[d]!);
    }
    yield { offset: at * width, length: run };
  }
}

/** "[0:4, 8:16]": first and end of each dim. */
export function printRegion({ start, shape }: Region): string {
  return `[${start.map((first, dim) => `${first}:${first + shape[dim]!}`).join(", ")}]`;
}

function strides(shape: readonly number[]): readonly number[] {
  const steps = new Array<number>(shape.length);
  let step = 1;
  for (let dim = shape.length - 1; dim >= 0; dim--) {
    steps[dim] = step;
    step *= shape[dim]!;
  }
  return steps;
}

function flatIndex(at: readonly number[], steps: readonly number[]): number {
  let index = 0;
  for (let dim = 0; dim < at.length; dim++) index += at[dim]! * steps[dim]!;
  return index;
}
