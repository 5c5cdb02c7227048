/**
 * A global batch dealt to ranks and microbatches by its samples' metadata alone: OVERLORD's central
 * plan (arXiv:2504.09844; its primitives distribute, cost, balance and plan). Which samples a step has is decided
 * before, by the global order; this decides only where each goes, so the gradient of the step is the
 * same for every deal, up to the order of summation.
 */
import { TriremeError } from "@trireme/core";
import { balanceGreedy, balanceKarmarkarKarp } from "./balance.ts";

/** How samples are dealt. */
export type BalanceMethod =
  /** Contiguous shares in global order, as `createLoader` has them. */
  "order" | "greedy" | "karmarkar-karp";

/** What to deal. */
export interface DistributionOptions {
  /** Work of each sample of the batch, in global order. */
  readonly costs: ArrayLike<number>;
  /** Data-parallel ranks. */
  readonly ranks: number;
  /** Microbatches of each rank. */
  readonly microbatches: number;
  readonly method: BalanceMethod;
  /** Whether every microbatch has as many samples. Default true; false suits packed rows. */
  readonly equalCounts?: boolean;
}

/** Where each sample goes, and what comes of it. */
export interface Distribution {
  readonly rankOf: Int32Array;
  readonly microbatchOf: Int32Array;
  /** Work of each microbatch. [ranks, microbatches] */
  readonly loads: Float64Array;
  /** Work of the busiest rank over the mean of the ranks, at least 1: what the step waits for. */
  readonly imbalance: number;
}

/** Deals a batch: to ranks first, then each rank's samples to its microbatches. */
export function distribute(options: DistributionOptions): Distribution {
  const { costs, ranks, microbatches, method, equalCounts = true } = options;
  for (const [name, value] of Object.entries({ ranks, microbatches })) {
    if (!Number.isInteger(value) || value < 1)
      throw new TriremeError("DISTRIBUTION", `${name} ${value} is not a positive integer`);
  }
  const cells = ranks * microbatches;
  if (equalCounts && costs.length % cells !== 0) {
    throw new TriremeError(
      "DISTRIBUTION",
      `${costs.length} samples do not divide over ranks(${ranks}) x microbatches(${microbatches}) = ${cells}; the nearest is ${Math.max(1, Math.round(costs.length / cells)) * cells}`,
    );
  }
  const rankOf = groupsOf(method, Float64Array.from(costs), ranks, equalCounts);
  const microbatchOf = new Int32Array(costs.length);
  const samplesOfRank = Array.from({ length: ranks }, (): number[] => []);
  rankOf.forEach((rank, sample) => samplesOfRank[rank]!.push(sample));
  for (const mine of samplesOfRank) {
    const own = Float64Array.from(mine, (sample) => costs[sample]!);
    groupsOf(method, own, microbatches, equalCounts).forEach((microbatch, i) => {
      microbatchOf[mine[i]!] = microbatch;
    });
  }
  const loads = new Float64Array(cells);
  rankOf.forEach((rank, sample) => {
    loads[rank * microbatches + microbatchOf[sample]!]! += costs[sample]!;
  });
  const perRank = Array.from({ length: ranks }, (_, rank) =>
    loads.subarray(rank * microbatches, (rank + 1) * microbatches).reduce((a, b) => a + b),
  );
  return { rankOf, microbatchOf, loads, imbalance: imbalanceOf(perRank) };
}

/** The largest load over the mean, at least 1; 1 where there is no work. */
export function imbalanceOf(loads: ArrayLike<number>): number {
  let [sum, most] = [0, 0];
  for (let i = 0; i < loads.length; i++) {
    sum += loads[i]!;
    most = Math.max(most, loads[i]!);
  }
  return sum === 0 ? 1 : Math.max(1, (most * loads.length) / sum);
}

function groupsOf(
  method: BalanceMethod,
  costs: Float64Array,
  groups: number,
  equalCounts: boolean,
): Int32Array {
  switch (method) {
    case "order":
      return Int32Array.from(costs, (_, i) => Math.floor((i * groups) / costs.length));
    case "greedy":
      return balanceGreedy({ costs, groups, equalCounts }).groupOf;
    case "karmarkar-karp":
      return balanceKarmarkarKarp({ costs, groups, equalCounts }).groupOf;
  }
}
