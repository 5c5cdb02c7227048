/**
 * All-reduce in levels. Within a host ranks reduce-scatter, so that each of them takes 1/g of the
 * buffer through the network, ring-reduces it with its peers of the same place in other hosts, and
 * gathers the rest within the host. Gloo's bcube is the same thing with more levels.
 */
import { TriremeError } from "@trireme/core";
import { type CollectivePlan, PlanBuilder, checkRanks } from "./plan.ts";

/** Ranks in hosts: rank h * perHost + l is the l-th of host h. */
export interface HostGrid {
  readonly hosts: number;
  readonly perHost: number;
}

/** Throws `GRID` unless both counts are positive integers. */
export function checkGrid({ hosts, perHost }: HostGrid): void {
  if (Number.isInteger(hosts) && Number.isInteger(perHost) && hosts >= 1 && perHost >= 1) return;
  throw new TriremeError(
    "GRID",
    `${hosts} hosts of ${perHost} ranks; both must be integers of at least 1`,
  );
}

/** Two-level all-reduce: 2 (perHost - 1) steps inside hosts, 2 (hosts - 1) between them. */
export function hierarchicalAllReduce(grid: HostGrid): CollectivePlan {
  checkGrid(grid);
  const { hosts, perHost } = grid;
  const ranks = hosts * perHost;
  const builder = new PlanBuilder({
    operation: "all-reduce",
    algorithm: "hierarchical",
    ranks,
    chunks: ranks,
  });
  // Place l of a host is in charge of chunks l * hosts .. l * hosts + hosts - 1.
  const inside = (first: number, reduce: boolean): void => {
    for (let t = 0; t < perHost - 1; t++) {
      for (let rank = 0; rank < ranks; rank++) {
        const l = rank % perHost;
        const part = (l + first - t + 2 * perHost) % perHost;
        builder.add(rank, rank - l + ((l + 1) % perHost), part * hosts, hosts, reduce);
      }
      builder.step();
    }
  };
  const between = (first: number, reduce: boolean): void => {
    for (let t = 0; t < hosts - 1; t++) {
      for (let rank = 0; rank < ranks; rank++) {
        const l = rank % perHost;
        const h = (rank - l) / perHost;
        const part = (h + first - t + 2 * hosts) % hosts;
        builder.add(rank, ((h + 1) % hosts) * perHost + l, l * hosts + part, 1, reduce);
      }
      builder.step();
    }
  };
  inside(-1, true);
  between(0, true);
  between(1, false);
  inside(0, false);
  return builder.finish();
}

/**
 * Gloo's bcube: ranks are numbers of k digits in `base`; in each of k levels those that differ in
 * one digit reduce-scatter directly, and gather on the way back; 2 k steps.
 */
export function bcubeAllReduce(ranks: number, base: number): CollectivePlan {
  checkRanks(ranks);
  if (!Number.isInteger(base) || base < 2) {
    throw new TriremeError("BCUBE", `base ${base} must be an integer of at least 2`);
  }
  let power = 1;
  while (power < ranks) power *= base;
  if (power !== ranks) {
    throw new TriremeError(
      "BCUBE",
      `${ranks} ranks must be a power of the base ${base}, as ${power / base} or ${power} are`,
    );
  }
  const head = { operation: "all-reduce", algorithm: "bcube", ranks, chunks: ranks } as const;
  const builder = new PlanBuilder(head);
  const level = (stride: number, reduce: boolean): void => {
    for (let rank = 0; rank < ranks; rank++) {
      const digit = Math.floor(rank / stride) % base;
      for (let shift = 1; shift < base; shift++) {
        const peer = rank + (((digit + shift) % base) - digit) * stride;
        const holder = reduce ? peer : rank;
        builder.add(rank, peer, holder - (holder % stride), stride, reduce);
      }
    }
    builder.step();
  };
  for (let stride = ranks / base; stride >= 1; stride /= base) level(stride, true);
  for (let stride = 1; stride < ranks; stride *= base) level(stride, false);
  return builder.finish();
}
