/**
 * Interleaved 1F1B (Narayanan et al., Efficient Large-Scale Language Model Training on GPU
 * Clusters, SC 2021, §2.2) in Megatron-LM's order: each rank holds V chunks, r, r+P, r+2P, …, and
 * takes microbatches in groups of N through one chunk after the other. Bubble (P−1)(F+B)/V where F
 * and B are the times of all V chunks. N is P by default where P divides M, as Megatron's
 * (microbatch_group_size_per_vp_stage) is; else the smallest that leaves no group with fewer microbatches than ranks.
 * Torch's Interleaved1F1B is the same order with N = M / max(1, ⌊M/P⌋), which is that size wherever torch takes M.
 */
import { TriremeError } from "@trireme/core";
import { kindCode } from "./action.ts";
import { checkCounts, loopBuilder } from "./schedule-builder.ts";
import type { Schedule } from "./schedule.ts";

export interface InterleavedOptions {
  readonly ranks: number;
  /** Stages per rank, V (Megatron: virtual pipeline size). With 1 the order is 1F1B's. */
  readonly chunks: number;
  readonly microbatches: number;
  /** Consecutive microbatches that a rank runs through one chunk, N, in P..M; left out, the smallest legal. */
  readonly groupSize?: number;
}

/**
 * Interleaved 1F1B.
 * @throws TriremeError `SCHEDULE` when the microbatches do not fall into groups of legal size: N
 * must lie in P..M, and the last group must be whole or hold at least P.
 */
export function interleaved(o: InterleavedOptions): Schedule {
  const { ranks, chunks, microbatches } = o;
  checkCounts("interleaved", { ranks, chunks, microbatches });
  return interleavedRows("interleaved", o, checkGroupSize("interleaved", o), 0);
}

/** The rows of interleaved 1F1B, every rank's warm-up `more` forwards longer than Megatron's. */
export function interleavedRows(
  name: string,
  o: InterleavedOptions,
  groupSize: number,
  more: number,
): Schedule {
  const { ranks, chunks, microbatches } = o;
  const perRank = microbatches * chunks;
  const order = interleavedOrder(microbatches, chunks, groupSize);
  const builder = loopBuilder(name, o);
  for (let r = 0; r < ranks; r++) {
    const warmUp = Math.min(perRank, interleavedWarmUp(o, r, groupSize) + more);
    for (let k = 0; k < perRank + warmUp; k++) {
      if (k < perRank) {
        builder.add(kindCode.F, order.chunk[k]! * ranks + r, order.microbatch[k]!);
      }
      if (k < warmUp) continue;
      const b = k - warmUp;
      builder.add(kindCode.B, (chunks - 1 - order.chunk[b]!) * ranks + r, order.microbatch[b]!);
    }
    builder.endRow();
  }
  return builder.finish();
}

/** Forwards that rank r runs before its first backward. */
function interleavedWarmUp(
  o: Pick<InterleavedOptions, "ranks" | "chunks" | "microbatches">,
  rank: number,
  groupSize: number,
): number {
  const behind = o.ranks - 1 - rank;
  const warmUp = o.chunks === 1 ? behind : 2 * behind + (o.chunks - 1) * groupSize;
  return Math.min(warmUp, o.microbatches * o.chunks);
}

/**
 * The order in which a rank's forwards take (microbatch, chunk): groups of N microbatches, each
 * group through chunk 0, 1, …; Megatron's schedule table. M·V entries in each column.
 */
export function interleavedOrder(
  microbatches: number,
  chunks: number,
  groupSize: number,
): { readonly microbatch: Int32Array; readonly chunk: Int32Array } {
  const microbatch = new Int32Array(microbatches * chunks);
  const chunk = new Int32Array(microbatches * chunks);
  let k = 0;
  for (let from = 0; from < microbatches; from += groupSize) {
    const to = Math.min(from + groupSize, microbatches);
    for (let c = 0; c < chunks; c++) {
      for (let m = from; m < to; m++) {
        microbatch[k] = m;
        chunk[k++] = c;
      }
    }
  }
  return { microbatch, chunk };
}

/** The group size to use: the one given if it is legal, else the smallest that is. */
export function checkGroupSize(name: string, o: InterleavedOptions): number {
  const { ranks, microbatches, groupSize } = o;
  if (groupSize !== undefined) {
    const low = Math.min(ranks, microbatches);
    if (!Number.isInteger(groupSize) || groupSize < low || groupSize > microbatches) {
      throw new TriremeError(
        "SCHEDULE",
        `${name}: group size ${groupSize} is not an integer in ${low}..${microbatches} ` +
          `(ranks..microbatches); the nearest is ${Math.min(microbatches, Math.max(low, Math.round(groupSize) || low))}`,
      );
    }
    const rest = microbatches % groupSize;
    if (rest !== 0 && rest < ranks) {
      throw new TriremeError(
        "SCHEDULE",
        `${name}: ${microbatches} microbatches in groups of ${groupSize} leave ${rest}, fewer than ` +
          `the ${ranks} ranks; the nearest legal count is ${microbatches - rest} microbatches`,
      );
    }
    return groupSize;
  }
  return smallestGroup(ranks, microbatches);
}

/**
 * The fewest microbatches that make groups which Megatron-LM accepts: one for each rank or more, the last group too. It
 * is P where P divides M, and torch's M / ⌊M/P⌋ where that is whole; M itself is always legal.
 */
function smallestGroup(ranks: number, microbatches: number): number {
  let size = Math.min(ranks, microbatches);
  while (microbatches % size !== 0 && microbatches % size < ranks) size++;
  return size;
}
