/**
 * Reduction in switches: a rank sends its buffer up once and gets the sum down once, S bytes each
 * way in place of 2 (n - 1) / n S, so that bus bandwidth as nccl-tests counts it passes that of the
 * link. NVLS: an NVSwitch sums what the owner of a chunk reads, and spreads what it writes. SHARP:
 * switches in a tree sum on the way up and copy on the way down.
 */
import { TriremeError } from "@trireme/core";
import { type CollectivePlan, PlanBuilder, checkRanks } from "./plan.ts";

/** NVLS all-reduce over one switch; chunk r is read and written by rank r. */
export function nvlsAllReduce(ranks: number): CollectivePlan {
  checkRanks(ranks);
  const builder = new PlanBuilder({
    operation: "all-reduce",
    algorithm: "nvls",
    ranks,
    chunks: ranks,
    switches: ranks > 1 ? 1 : 0,
  });
  if (ranks === 1) return builder.finish();
  const all = Array.from({ length: ranks }, (_, rank) => rank);
  for (const rank of all) builder.add(rank, ranks, 0, ranks, true);
  builder.step();
  for (const rank of all) builder.add(ranks, rank, rank, 1, false);
  builder.step();
  for (const rank of all) builder.add(rank, ranks, rank, 1, false);
  builder.step();
  for (const rank of all) {
    if (rank > 0) builder.add(ranks, rank, 0, rank, false);
    if (rank < ranks - 1) builder.add(ranks, rank, rank + 1, ranks - rank - 1, false);
  }
  builder.step();
  return builder.finish();
}

/** SHARP all-reduce over a tree of switches, each with up to `radix` children. */
export function sharpAllReduce(ranks: number, radix = 32): CollectivePlan {
  checkRanks(ranks);
  if (!Number.isInteger(radix) || radix < 2) {
    throw new TriremeError("SHARP", `radix ${radix} must be an integer of at least 2`);
  }
  const levels = [Array.from({ length: ranks }, (_, rank) => rank)];
  let next = ranks;
  for (let below = levels[0]!; below.length > 1; below = levels.at(-1)!) {
    const count = Math.ceil(below.length / radix);
    levels.push(Array.from({ length: count }, () => next++));
  }
  const builder = new PlanBuilder({
    operation: "all-reduce",
    algorithm: "sharp",
    ranks,
    chunks: 1,
    switches: next - ranks,
  });
  const level = (i: number, up: boolean): void => {
    levels[i]!.forEach((node, place) => {
      const parent = levels[i + 1]![Math.floor(place / radix)]!;
      builder.add(up ? node : parent, up ? parent : node, 0, 1, up);
    });
    builder.step();
  };
  for (let i = 0; i < levels.length - 1; i++) level(i, true);
  for (let i = levels.length - 2; i >= 0; i--) level(i, false);
  return builder.finish();
}
