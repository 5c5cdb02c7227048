/**
 * Bruck's algorithms for short messages: ⌈lg n⌉ steps for any n (Bruck, Ho, Kipnis, Upfal,
 * Weathersby, TPDS 1997). The local rotations of the original order memory only; named chunks make
 * them unnecessary here.
 */
import { type CollectivePlan, PlanBuilder, checkRanks } from "./plan.ts";

/** Bruck all-gather: in the step of distance d each rank passes on up to d chunks. */
export function bruckAllGather(ranks: number): CollectivePlan {
  checkRanks(ranks);
  const head = { operation: "all-gather", algorithm: "bruck", ranks, chunks: ranks } as const;
  const builder = new PlanBuilder(head);
  for (let distance = 1; distance < ranks; distance *= 2) {
    const count = Math.min(distance, ranks - distance);
    for (let rank = 0; rank < ranks; rank++) {
      builder.addWrapped(rank, (rank + ranks - distance) % ranks, rank, count, false);
    }
    builder.step();
  }
  return builder.finish();
}

/** Distance and blocks sent per rank of each round of the all-to-all. */
export function bruckRounds(ranks: number): { distance: number; blocks: number }[] {
  checkRanks(ranks);
  const rounds = [];
  for (let distance = 1; distance < ranks; distance *= 2) {
    let blocks = 0;
    for (let offset = 1; offset < ranks; offset++) if (offset & distance) blocks++;
    rounds.push({ distance, blocks });
  }
  return rounds;
}

/** Bruck all-to-all: a block for the rank at offset j travels by the powers of two in j. */
export function bruckAllToAll(ranks: number): CollectivePlan {
  checkRanks(ranks);
  const chunks = ranks * ranks;
  const head = { operation: "all-to-all", algorithm: "bruck", ranks, chunks } as const;
  const builder = new PlanBuilder(
    head,
    bruckRounds(ranks).reduce((n, r) => n + ranks * r.blocks, 0),
  );
  for (const { distance } of bruckRounds(ranks)) {
    for (let origin = 0; origin < ranks; origin++) {
      for (let offset = distance; offset < ranks; offset++) {
        if ((offset & distance) === 0) continue;
        const at = (origin + (offset % distance)) % ranks;
        const chunk = origin * ranks + ((origin + offset) % ranks);
        builder.add(at, (at + distance) % ranks, chunk, 1, false);
      }
    }
    builder.step();
  }
  return builder.finish();
}
