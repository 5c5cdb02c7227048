/**
 * All-to-all-v: what every rank sends to every other. `splits` [R, R] holds at [from, to] the rows
 * that go from one rank to another; a rank's row of it is its input splits, a column its output
 * splits. Buffers are in order of the peer's rank. Received rows and sent rows of one exchange are
 * equal pair by pair, so that no rank waits for rows that never come.
 */
import { TriremeError } from "@trireme/core";
import { requireDivisible, requireInteger, requireLength } from "./shape.ts";

/** Rows that leave and reach the ranks of an exchange, in 64-bit floats: exact up to 2⁵³. */
export interface ExchangeVolume {
  /** [R] rows that each rank sends to others. */
  readonly sent: Float64Array;
  /** [R] rows that each rank receives from others. */
  readonly received: Float64Array;
  /** Rows that change rank. */
  readonly total: number;
  /** Rows that change host. */
  readonly betweenHosts: number;
  /** Largest of all `sent` and `received`: what the exchange waits for. */
  readonly largest: number;
}

/**
 * Splits [R, R] from counts [R, E] of the rows each rank has for each expert, with experts in
 * order over the ranks, E/R each. Counts and sums may pass 2³¹.
 */
export function splitsFromCounts(
  counts: ArrayLike<number>,
  ranks: number,
  experts: number,
): Float64Array {
  requireInteger("ranks", ranks, 1);
  requireInteger("experts", experts, 1);
  requireDivisible("experts", experts, "ranks", ranks);
  requireLength("counts", counts, ranks * experts, `${ranks} ranks x ${experts} experts`);
  const local = experts / ranks;
  const splits = new Float64Array(ranks * ranks);
  for (let from = 0; from < ranks; from++) {
    for (let e = 0; e < experts; e++) {
      splits[from * ranks + Math.floor(e / local)]! += counts[from * experts + e]!;
    }
  }
  return splits;
}

/** The splits of the way back: what combine sends, and what the backward pass of an exchange sends. */
export function reverseSplits(splits: ArrayLike<number>, ranks: number): Float64Array {
  requireLength("splits", splits, ranks * ranks, `${ranks} x ${ranks} ranks`);
  const reversed = new Float64Array(ranks * ranks);
  for (let from = 0; from < ranks; from++) {
    for (let to = 0; to < ranks; to++) reversed[to * ranks + from] = splits[from * ranks + to]!;
  }
  return reversed;
}

/** What an exchange moves. `ranksPerHost` (default all) says which rows change host. */
export function exchangeVolume(
  splits: ArrayLike<number>,
  ranks: number,
  ranksPerHost: number = ranks,
): ExchangeVolume {
  requireInteger("ranks", ranks, 1);
  requireInteger("ranksPerHost", ranksPerHost, 1);
  requireLength("splits", splits, ranks * ranks, `${ranks} x ${ranks} ranks`);
  const sent = new Float64Array(ranks);
  const received = new Float64Array(ranks);
  let total = 0;
  let betweenHosts = 0;
  for (let from = 0; from < ranks; from++) {
    for (let to = 0; to < ranks; to++) {
      if (from === to) continue;
      const rows = splits[from * ranks + to]!;
      sent[from]! += rows;
      received[to]! += rows;
      total += rows;
      if (Math.floor(from / ranksPerHost) !== Math.floor(to / ranksPerHost)) betweenHosts += rows;
    }
  }
  let largest = 0;
  for (let r = 0; r < ranks; r++) largest = Math.max(largest, sent[r]!, received[r]!);
  return { sent, received, total, betweenHosts, largest };
}

/**
 * Carries out an exchange in one address space: buffer r of `sent` is rank r's rows of `width`
 * numbers in order of the receiving rank. The evidence that splits and orders agree.
 */
export function exchangeRows(
  sent: readonly Float64Array[],
  splits: ArrayLike<number>,
  width: number,
): Float64Array[] {
  const ranks = sent.length;
  requireLength("splits", splits, ranks * ranks, `${ranks} x ${ranks} ranks`);
  const received = sent.map((_, to) => {
    let rows = 0;
    for (let from = 0; from < ranks; from++) rows += splits[from * ranks + to]!;
    return new Float64Array(rows * width);
  });
  const ends = new Float64Array(ranks);
  for (let from = 0; from < ranks; from++) {
    let at = 0;
    for (let to = 0; to < ranks; to++) {
      const length = splits[from * ranks + to]! * width;
      received[to]!.set(sent[from]!.subarray(at, at + length), ends[to]);
      at += length;
      ends[to]! += length;
    }
    if (at !== sent[from]!.length) {
      throw new TriremeError(
        "MOE_SPLITS",
        `rank ${from} holds ${sent[from]!.length / width} rows, but its splits add up to ${at / width}`,
      );
    }
  }
  return received;
}
