/**
 * The cost of making process groups at start-up, as MegaScale found it (Jiang et al., NSDI 2024,
 * section 3.5). Every rank goes through a store that answers one request at a time. A barrier among
 * all ranks after each group makes groups x ranks requests, O(n²); creation in an order that needs
 * one barrier per kind of group makes O(n).
 */
import { type Seconds, TriremeError } from "@trireme/core";

/** Seconds a store takes for one request of a barrier. */
export interface Store {
  readonly name: string;
  readonly request: Seconds;
}

/**
 * PyTorch's TCPStore, single-threaded and blocking, and Redis. From MegaScale's 1047 s and 361 s on
 * 2,048 GPUs with TP 8 x PP 8 x DP 32: 576 groups, a barrier of 2,048 requests after each.
 */
export const stores: Readonly<Record<"tcp-store" | "redis", Store>> = {
  "tcp-store": { name: "tcp-store", request: 1047 / (576 * 2048) },
  redis: { name: "redis", request: 361 / (576 * 2048) },
};

/** Options of `groupCreation`. */
export interface GroupCreationOptions {
  /** Size of each axis of the mesh: groups of a kind are the ranks over that size. */
  readonly axes: readonly number[];
  readonly store: Store;
  /** A barrier after each group, or after each kind of group (axis). */
  readonly barriers: "per-group" | "per-kind";
}

/** What start-up takes. */
export interface GroupCreation {
  readonly ranks: number;
  readonly groups: number;
  readonly barriers: number;
  readonly requests: number;
  readonly time: Seconds;
}

/** Groups, barriers, requests and time of making all groups of a mesh. */
export function groupCreation(options: GroupCreationOptions): GroupCreation {
  const { axes, store, barriers: policy } = options;
  const bad = axes.find((size) => !Number.isInteger(size) || size < 1);
  if (bad !== undefined) {
    throw new TriremeError("AXES", `axis of size ${bad}; sizes must be integers of at least 1`);
  }
  const ranks = axes.reduce((product, size) => product * size, 1);
  const kinds = axes.filter((size) => size > 1);
  const groups = kinds.reduce((sum, size) => sum + ranks / size, 0);
  const barriers = policy === "per-group" ? groups : kinds.length;
  const requests = barriers * ranks;
  return { ranks, groups, barriers, requests, time: requests * store.request };
}
