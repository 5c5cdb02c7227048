/**
 * NCCL's PAT (parallel aggregated trees, Jeaugey 2025): an all-gather over binomial trees, one per
 * root and shifted by it, the farthest hop first, so that the data of many roots shares a message
 * only where hops are short; `aggregate` bounds what a message holds. Reduce-scatter is its reverse.
 */
import { TriremeError } from "@trireme/core";
import { type CollectivePlan, PlanBuilder, checkRanks } from "./plan.ts";

/** Steps of the all-gather: a distance and the offsets from the root of the ranks that send. */
function rounds(ranks: number, aggregate: number): { distance: number; offsets: number[] }[] {
  checkRanks(ranks);
  if (!Number.isInteger(aggregate) || aggregate < 1) {
    throw new TriremeError("PAT", `aggregate ${aggregate} must be an integer of at least 1`);
  }
  const all = [];
  let distance = 1;
  while (2 * distance < ranks) distance *= 2;
  for (; ranks > 1 && distance >= 1; distance /= 2) {
    const offsets = [];
    for (let offset = 0; offset + distance < ranks; offset += 2 * distance) offsets.push(offset);
    for (let i = 0; i < offsets.length; i += aggregate) {
      all.push({ distance, offsets: offsets.slice(i, i + aggregate) });
    }
  }
  return all;
}

/** PAT all-gather: ⌈lg n⌉ steps when `aggregate` is not reached. */
export function patAllGather(ranks: number, aggregate: number = ranks): CollectivePlan {
  const builder = new PlanBuilder(
    { operation: "all-gather", algorithm: "pat", ranks, chunks: ranks },
    ranks * (ranks - 1),
  );
  for (const { distance, offsets } of rounds(ranks, aggregate)) {
    for (let root = 0; root < ranks; root++) {
      for (const offset of offsets) {
        builder.add((root + offset) % ranks, (root + offset + distance) % ranks, root, 1, false);
      }
    }
    builder.step();
  }
  return builder.finish();
}

/** PAT reduce-scatter: the all-gather backwards. */
export function patReduceScatter(ranks: number, aggregate: number = ranks): CollectivePlan {
  const builder = new PlanBuilder(
    { operation: "reduce-scatter", algorithm: "pat", ranks, chunks: ranks },
    ranks * (ranks - 1),
  );
  for (const { distance, offsets } of rounds(ranks, aggregate).toReversed()) {
    for (let root = 0; root < ranks; root++) {
      for (const offset of offsets) {
        builder.add((root + offset + distance) % ranks, (root + offset) % ranks, root, 1, true);
      }
    }
    builder.step();
  }
  return builder.finish();
}
