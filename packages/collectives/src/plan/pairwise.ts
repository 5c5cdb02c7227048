/**
 * Pairwise exchange: in step t each rank sends to the rank t further on and receives from the rank
 * t before, so that every link carries one message at a time; n - 1 steps.
 */
import { TriremeError } from "@trireme/core";
import { type CollectivePlan, PlanBuilder, checkRanks } from "./plan.ts";

/** Pairwise all-to-all. */
export function pairwiseAllToAll(ranks: number): CollectivePlan {
  checkRanks(ranks);
  return exchange(
    new PlanBuilder(
      { operation: "all-to-all", algorithm: "pairwise", ranks, chunks: ranks * ranks },
      ranks * (ranks - 1),
    ),
    ranks,
    () => true,
  );
}

/**
 * Pairwise all-to-all of parts of any size: `counts[i][j]` from rank i to rank j, zeros anywhere.
 * Nothing is sent for a zero.
 */
export function pairwiseAllToAllV(counts: readonly (readonly number[])[]): CollectivePlan {
  const ranks = counts.length;
  checkRanks(ranks);
  const bad = counts.findIndex(
    (row) => row.length !== ranks || row.some((n) => !Number.isInteger(n) || n < 0),
  );
  if (bad >= 0) {
    throw new TriremeError(
      "COUNT",
      `counts of rank ${bad} are [${counts[bad]!.join(", ")}], must be ${ranks} integers of at least 0`,
    );
  }
  const sizes = Float64Array.from(counts.flat());
  const builder = new PlanBuilder({
    operation: "all-to-all",
    algorithm: "pairwise",
    ranks,
    chunks: ranks * ranks,
    sizes,
  });
  return exchange(builder, ranks, (i, j) => counts[i]![j]! > 0);
}

/** Pairwise reduce-scatter: each rank sends the target its chunk; n - 1 steps. */
export function pairwiseReduceScatter(ranks: number): CollectivePlan {
  checkRanks(ranks);
  const head = {
    operation: "reduce-scatter",
    algorithm: "pairwise",
    ranks,
    chunks: ranks,
  } as const;
  const builder = new PlanBuilder(head, ranks * (ranks - 1));
  for (let shift = 1; shift < ranks; shift++) {
    for (let rank = 0; rank < ranks; rank++) {
      const target = (rank + shift) % ranks;
      builder.add(rank, target, target, 1, true);
    }
    builder.step();
  }
  return builder.finish();
}

function exchange(
  builder: PlanBuilder,
  ranks: number,
  sends: (source: number, target: number) => boolean,
): CollectivePlan {
  for (let shift = 1; shift < ranks; shift++) {
    for (let rank = 0; rank < ranks; rank++) {
      const target = (rank + shift) % ranks;
      if (sends(rank, target)) builder.add(rank, target, rank * ranks + target, 1, false);
    }
    builder.step();
  }
  return builder.finish();
}
