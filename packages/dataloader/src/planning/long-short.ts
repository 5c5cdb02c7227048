/**
 * Long-short sequence parallelism: of one microbatch, short samples stay whole, each on one rank, and
 * long ones are cut over all ranks of a group (Ulysses), decided anew for each microbatch
 * (MegaScale-Omni, arXiv:2605.08962; "data-parallel where it fits, sequence-parallel where it must").
 */
import { TriremeError } from "@trireme/core";
import { balanceGreedy } from "../balance.ts";

/** One microbatch of a group of ranks. */
export interface LongShortOptions {
  /** Tokens of each sample. */
  readonly lengths: ArrayLike<number>;
  /** Ranks of the group. */
  readonly ranks: number;
  /** Time of a sample of so many tokens on one rank. */
  readonly costOf: (tokens: number) => number;
  /** Time that cutting a sample over the group adds: its all-to-alls. Default none. */
  readonly exchangeOf?: (tokens: number) => number;
  /** Tokens that one rank has memory for; longer samples must be cut. Default no limit. */
  readonly maxTokens?: number;
}

/** What is cut and what is not. */
export interface LongShort {
  /** Samples cut over the group, longest first; the others stay whole. */
  readonly long: readonly number[];
  /** Rank of each sample that stays whole, -1 for one that is cut. */
  readonly rankOf: Int32Array;
  /** Time of the slowest rank: all long samples one after the other, then its short ones. */
  readonly makespan: number;
}

/**
 * The number of longest samples to cut that makes the slowest rank fastest; of equals the fewest. Every
 * number is tried, short samples dealt longest first: O(n² log n), microbatches are small.
 * @throws TriremeError "LONG_SHORT" where a sample does not fit even when it is cut.
 */
export function longShort(options: LongShortOptions): LongShort {
  const { lengths, ranks, costOf, exchangeOf = () => 0, maxTokens = Infinity } = options;
  if (!Number.isInteger(ranks) || ranks < 1)
    throw new TriremeError("LONG_SHORT", `${ranks} ranks; use a positive integer`);
  if (!(maxTokens > 0))
    throw new TriremeError("LONG_SHORT", `maxTokens ${maxTokens} is not positive`);
  const time = (what: string, sample: number, of: (tokens: number) => number): number => {
    const value = of(lengths[sample]!);
    if (value >= 0 && value < Infinity) return value;
    throw new TriremeError(
      "LONG_SHORT",
      `${what} of sample ${sample} with ${lengths[sample]} tokens is ${value}; times are finite and at least 0`,
    );
  };
  for (let i = 0; i < lengths.length; i++) {
    if (!(lengths[i]! >= 0 && lengths[i]! < Infinity))
      throw new TriremeError("LONG_SHORT", `sample ${i} has ${lengths[i]} tokens; use a count`);
  }
  const order = Array.from({ length: lengths.length }, (_, i) => i).sort(
    (a, b) => lengths[b]! - lengths[a]! || a - b,
  );
  const longest = order.length === 0 ? 0 : lengths[order[0]!]!;
  if (longest > maxTokens * ranks) {
    throw new TriremeError(
      "LONG_SHORT",
      `sample ${order[0]} has ${longest} tokens; ${ranks} ranks hold ${maxTokens} each, ${maxTokens * ranks} together; use at least ${Math.ceil(longest / maxTokens)} ranks`,
    );
  }
  const costs = order.map((sample) => time("cost", sample, costOf));
  const must = order.filter((sample) => lengths[sample]! > maxTokens).length;
  let best: LongShort | undefined;
  let cut = 0;
  for (let count = 0; count <= order.length; count++) {
    if (count > 0)
      cut += costs[count - 1]! / ranks + time("exchange", order[count - 1]!, exchangeOf);
    if (count < must) continue;
    const { groupOf, loads } = balanceGreedy({ costs: costs.slice(count), groups: ranks });
    const makespan = cut + loads.reduce((a, b) => Math.max(a, b), 0);
    if (best !== undefined && makespan >= best.makespan) continue;
    const rankOf = new Int32Array(order.length).fill(-1);
    groupOf.forEach((rank, i) => (rankOf[order[count + i]!] = rank));
    best = { long: order.slice(0, count), rankOf, makespan };
    // With one rank there is nothing to cut over.
    if (ranks === 1) break;
  }
  return best!;
}
