/**
 * The dissemination barrier: in step k rank r tells rank r + 2^k all it knows of who has come, and
 * after ⌈lg n⌉ steps everyone knows of everyone (Hensgen, Finkel, Manber, IJPP 1988).
 */
import { type CollectivePlan, PlanBuilder, checkRanks } from "./plan.ts";

/** Dissemination barrier; its one chunk carries nothing. */
export function disseminationBarrier(ranks: number): CollectivePlan {
  checkRanks(ranks);
  const head = { operation: "barrier", algorithm: "dissemination", ranks, chunks: 1 } as const;
  const builder = new PlanBuilder(head);
  for (let distance = 1; distance < ranks; distance *= 2) {
    for (let rank = 0; rank < ranks; rank++) {
      builder.add(rank, (rank + distance) % ranks, 0, 1, true);
    }
    builder.step();
  }
  return builder.finish();
}
