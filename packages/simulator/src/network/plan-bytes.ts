/** Bytes of a collective's transfers. */
import type { Bytes } from "@trireme/core";
import { type CollectivePlan, chunkBytes } from "@trireme/collectives";

/**
 * Gives the bytes of each row of a plan, when each rank's buffer (of an all-to-all, of what it sends)
 * has `bytes`.
 */
export function rowBytes(plan: CollectivePlan, bytes: Bytes): (row: number) => Bytes {
  const { sizes, chunk, count, chunks } = plan;
  const one = chunkBytes(plan, bytes);
  if (sizes === undefined) return (row) => count[row]! * one;
  const before = new Float64Array(chunks + 1);
  for (let c = 0; c < chunks; c++) before[c + 1] = before[c]! + sizes[c]!;
  const unit = (one * chunks) / before[chunks]!;
  return (row) => unit * (before[chunk[row]! + count[row]!]! - before[chunk[row]!]!);
}

/** Bytes that each pair of ranks exchanges in a plan, in one direction. */
export interface PairTraffic {
  readonly from: Int32Array;
  readonly to: Int32Array;
  readonly bytes: Float64Array;
}

/** All that a plan sends between each pair of ranks, as a pipelined implementation streams it. */
export function pairTraffic(plan: CollectivePlan, bytes: Bytes): PairTraffic {
  const of = rowBytes(plan, bytes);
  const ends = plan.ranks + plan.switches;
  const sums = new Map<number, Bytes>();
  for (let row = 0; row < plan.source.length; row++) {
    const pair = plan.source[row]! * ends + plan.target[row]!;
    sums.set(pair, (sums.get(pair) ?? 0) + of(row));
  }
  return {
    from: Int32Array.from(sums.keys(), (pair) => Math.floor(pair / ends)),
    to: Int32Array.from(sums.keys(), (pair) => pair % ends),
    bytes: Float64Array.from(sums.values()),
  };
}
