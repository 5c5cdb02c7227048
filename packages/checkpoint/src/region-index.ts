/**
 * Finds the regions that may meet a given one: sorted along the dim in which they start at the most
 * different places, so that a tensor cut a thousand ways into rows is not searched a thousand times.
 */
import type { Region } from "./region.ts";

export class RegionIndex {
  readonly #dim: number;
  /** Of the regions in order of their start: number, start, and the furthest end up to here. */
  readonly #order: Int32Array;
  readonly #starts: Float64Array;
  readonly #ends: Float64Array;

  constructor(regions: readonly Region[]) {
    this.#dim = sweepDim(regions);
    const dim = this.#dim;
    const start = (i: number): number => regions[i]!.start[dim] ?? 0;
    this.#order = Int32Array.from(regions.keys()).sort((a, b) => start(a) - start(b) || a - b);
    this.#starts = Float64Array.from(this.#order, start);
    this.#ends = new Float64Array(regions.length);
    let furthest = -Infinity;
    for (let i = 0; i < regions.length; i++) {
      const region = regions[this.#order[i]!]!;
      furthest = Math.max(furthest, (region.start[dim] ?? 0) + (region.shape[dim] ?? 1));
      this.#ends[i] = furthest;
    }
  }

  /** Calls `visit` with the number of each region that overlaps in the sorted dim, maybe not in others. */
  overlapping(region: Region, visit: (index: number) => void): void {
    const from = region.start[this.#dim] ?? 0;
    const to = from + (region.shape[this.#dim] ?? 1);
    // `#ends` never falls: the first entry that reaches past `from` is found by halving.
    let low = 0;
    let high = this.#ends.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#ends[middle]! > from) high = middle;
      else low = middle + 1;
    }
    for (let i = low; i < this.#starts.length && this.#starts[i]! < to; i++) {
      visit(this.#order[i]!);
    }
  }
}

function sweepDim(regions: readonly Region[]): number {
  const dims = regions[0]?.start.length ?? 0;
  let best = 0;
  let most = 0;
  for (let dim = 0; dim < dims; dim++) {
    const starts = new Set<number>();
    for (const region of regions) starts.add(region.start[dim]!);
    if (starts.size > most) {
      most = starts.size;
      best = dim;
    }
  }
  return best;
}
