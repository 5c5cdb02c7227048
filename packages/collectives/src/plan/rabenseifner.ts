/**
 * Rabenseifner's all-reduce: a reduce-scatter by recursive halving, then an all-gather by recursive
 * doubling; 2 lg n steps and 2 (n - 1) / n of the buffer, for long messages on few links
 * (Rabenseifner, ICCS 2004). Gloo calls it halving-doubling.
 */
import { type CollectivePlan, PlanBuilder, checkRanks } from "./plan.ts";
import { checkPowerOfTwo, folded, powerOfTwoUpTo } from "./recursive-doubling.ts";

/** After it, the i-th rank of a power of two holds chunk i summed. */
function halve(builder: PlanBuilder, ranks: readonly number[]): void {
  for (let distance = ranks.length / 2; distance >= 1; distance /= 2) {
    ranks.forEach((rank, i) => {
      const partner = i ^ distance;
      builder.add(rank, ranks[partner]!, partner - (partner % distance), distance, true);
    });
    builder.step();
  }
}

/** Halving-doubling all-reduce, any rank count; 2 more steps where that is no power of two. */
export function rabenseifnerAllReduce(ranks: number): CollectivePlan {
  checkRanks(ranks);
  const chunks = powerOfTwoUpTo(ranks);
  const builder = new PlanBuilder({
    operation: "all-reduce",
    algorithm: "rabenseifner",
    ranks,
    chunks,
  });
  folded(builder, ranks, chunks, (remaining) => {
    halve(builder, remaining);
    for (let distance = 1; distance < remaining.length; distance *= 2) {
      remaining.forEach((rank, i) =>
        builder.add(rank, remaining[i ^ distance]!, i - (i % distance), distance, false),
      );
      builder.step();
    }
  });
  return builder.finish();
}

/** Recursive-halving reduce-scatter; the rank count must be a power of two. */
export function recursiveHalvingReduceScatter(ranks: number): CollectivePlan {
  checkPowerOfTwo(ranks, "recursive-halving reduce-scatter");
  const builder = new PlanBuilder({
    operation: "reduce-scatter",
    algorithm: "recursive-halving",
    ranks,
    chunks: ranks,
  });
  halve(
    builder,
    Array.from({ length: ranks }, (_, rank) => rank),
  );
  return builder.finish();
}
