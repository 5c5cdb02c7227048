/**
 * Partners at distance 1, 2, 4, … exchange what they have: ⌈lg n⌉ steps (Thakur, Rabenseifner,
 * Gropp: Optimization of collective communication operations in MPICH, IJHPCA 2005). An all-reduce
 * over a count that is no power of two first folds the surplus ranks into their neighbours.
 */
import { TriremeError } from "@trireme/core";
import { type CollectivePlan, PlanBuilder, checkRanks } from "./plan.ts";

/** The largest power of two up to n. */
export function powerOfTwoUpTo(n: number): number {
  return 2 ** Math.floor(Math.log2(n));
}

/** Throws `POWER_OF_TWO` unless `ranks` is one. */
export function checkPowerOfTwo(ranks: number, what: string): void {
  checkRanks(ranks);
  const below = powerOfTwoUpTo(ranks);
  if (below !== ranks) {
    throw new TriremeError(
      "POWER_OF_TWO",
      `${what} over ${ranks} ranks; the count must be a power of two, as ${below} or ${2 * below} are`,
    );
  }
}

/**
 * Folds the surplus over a power of two into neighbours before `body`, and undoes it after. Of the
 * first 2 (n - 2^k) ranks the even ones hand their data to the odd ones and wait. `body` gets the
 * ranks that remain, 2^k of them, in order.
 */
export function folded(
  builder: PlanBuilder,
  ranks: number,
  chunks: number,
  body: (remaining: readonly number[]) => void,
): void {
  const power = powerOfTwoUpTo(ranks);
  const surplus = ranks - power;
  const remaining = Array.from({ length: power }, (_, i) =>
    i < surplus ? 2 * i + 1 : i + surplus,
  );
  for (let i = 0; i < surplus; i++) builder.add(2 * i, 2 * i + 1, 0, chunks, true);
  if (surplus > 0) builder.step();
  body(remaining);
  for (let i = 0; i < surplus; i++) builder.add(2 * i + 1, 2 * i, 0, chunks, false);
  if (surplus > 0) builder.step();
}

/** Recursive-doubling all-reduce of the whole buffer, any rank count. */
export function recursiveDoublingAllReduce(ranks: number): CollectivePlan {
  checkRanks(ranks);
  const builder = new PlanBuilder({
    operation: "all-reduce",
    algorithm: "recursive-doubling",
    ranks,
    chunks: 1,
  });
  folded(builder, ranks, 1, (remaining) => {
    for (let distance = 1; distance < remaining.length; distance *= 2) {
      remaining.forEach((rank, i) => builder.add(rank, remaining[i ^ distance]!, 0, 1, true));
      builder.step();
    }
  });
  return builder.finish();
}

/** Recursive-doubling all-gather; the rank count must be a power of two. */
export function recursiveDoublingAllGather(ranks: number): CollectivePlan {
  checkPowerOfTwo(ranks, "recursive-doubling all-gather");
  const builder = new PlanBuilder({
    operation: "all-gather",
    algorithm: "recursive-doubling",
    ranks,
    chunks: ranks,
  });
  for (let distance = 1; distance < ranks; distance *= 2) {
    for (let rank = 0; rank < ranks; rank++) {
      builder.add(rank, rank ^ distance, rank - (rank % distance), distance, false);
    }
    builder.step();
  }
  return builder.finish();
}
