/** For each of many ranks, which times its intervals cover together. */
import type { Seconds } from "@trireme/core";

/**
 * Disjoint intervals of every rank in ascending order, to which intervals that end later are added. The
 * latest of each rank, to which nearly all are joined, stand in rows of their own.
 */
export class Covers {
  /** The latest interval of each rank; it ends at −Infinity where there is none. */
  readonly #start: Float64Array;
  readonly #end: Float64Array;
  /** Where the interval before it ends; −Infinity where there is none. */
  readonly #before: Float64Array;
  /** Starts and ends of those before it in turn, and how many numbers. */
  readonly #earlier: Float64Array[];
  readonly #length: Int32Array;

  constructor(ranks: number) {
    this.#start = new Float64Array(ranks);
    this.#end = new Float64Array(ranks).fill(-Infinity);
    this.#before = new Float64Array(ranks).fill(-Infinity);
    const none = new Float64Array();
    this.#earlier = Array.from({ length: ranks }, () => none);
    this.#length = new Int32Array(ranks);
  }

  /** Adds an interval of a rank that ends no earlier than those before. */
  add(rank: number, start: Seconds, end: Seconds): void {
    const last = this.#end[rank]!;
    if (start > last) {
      if (last >= 0) this.#keep(rank);
      this.#start[rank] = start;
    } else if (start < this.#start[rank]!) {
      this.#start[rank] = start;
      if (start <= this.#before[rank]!) this.#join(rank);
    }
    this.#end[rank] = end;
  }

  /** Starts and ends of a rank's intervals in turn. */
  intervals(rank: number): Float64Array {
    const kept = this.#earlier[rank]!.subarray(0, this.#length[rank]);
    if (this.#end[rank]! < 0) return kept;
    const all = new Float64Array(kept.length + 2);
    all.set(kept);
    all[kept.length] = this.#start[rank]!;
    all[kept.length + 1] = this.#end[rank]!;
    return all;
  }

  /** Puts the latest interval to the earlier ones. */
  #keep(rank: number): void {
    let list = this.#earlier[rank]!;
    const length = this.#length[rank]!;
    if (length === list.length) {
      const grown = new Float64Array(Math.max(16, 2 * length));
      grown.set(list);
      this.#earlier[rank] = list = grown;
    }
    list[length] = this.#start[rank]!;
    list[length + 1] = this.#before[rank] = this.#end[rank]!;
    this.#length[rank] = length + 2;
  }

  /** Takes earlier intervals that the latest now reaches into it. */
  #join(rank: number): void {
    const list = this.#earlier[rank]!;
    let length = this.#length[rank]!;
    while (length > 0 && list[length - 1]! >= this.#start[rank]!) {
      this.#start[rank] = Math.min(this.#start[rank]!, list[length - 2]!);
      length -= 2;
    }
    this.#length[rank] = length;
    this.#before[rank] = length > 0 ? list[length - 1]! : -Infinity;
  }
}

/** Length of intervals that ascend, given by their starts and ends in turn, added up in order. */
export function covered(intervals: Float64Array): Seconds {
  let sum = 0;
  for (let i = 0; i < intervals.length; i += 2) sum += intervals[i + 1]! - intervals[i]!;
  return sum;
}

/** The intervals that two lists of disjoint ones cover together; those that touch are one. */
export function union(a: Float64Array, b: Float64Array): Float64Array {
  if (b.length === 0) return a;
  if (a.length === 0) return b;
  const all = new Float64Array(a.length + b.length);
  let length = 0;
  for (let i = 0, j = 0; i < a.length || j < b.length;) {
    const first = j >= b.length || (i < a.length && a[i]! <= b[j]!);
    const [start, end] = first ? [a[i]!, a[i + 1]!] : [b[j]!, b[j + 1]!];
    if (first) i += 2;
    else j += 2;
    if (length > 0 && all[length - 1]! >= start) {
      if (end > all[length - 1]!) all[length - 1] = end;
    } else {
      all[length++] = start;
      all[length++] = end;
    }
  }
  return all.subarray(0, length);
}
