/**
 * What a rank calls, in one form for all operations: what it gives, which part of that goes to whom,
 * and where it puts what it gets. Communicators that note or replay calls are written once over it.
 */
import type {
  Communicator,
  ElementType,
  Elements,
  Operation,
  Split,
  Work,
} from "@trireme/collectives";

/** One call of one rank in a group. */
export interface GroupCall {
  readonly operation: Operation;
  /** Root of a rooted operation, peer of a send or receive (ranks of the group); −1 without. */
  readonly peer: number;
  /** What this rank gives; undefined where it gives nothing. */
  readonly input: Elements | undefined;
  /** The part of the input for each rank of the group; left out, all of it for every one. */
  readonly sends?: Split | undefined;
  readonly output: Elements | undefined;
  /** The place of each rank's part in the output; left out, all of it. */
  readonly receives?: Split | undefined;
  /** The same call on another communicator of the group. */
  readonly on: (group: Communicator) => Work;
}

/** A call's element type, and its elements as this rank counts them. */
export function callExtent({ input, output }: Pick<GroupCall, "input" | "output">): {
  readonly type: ElementType;
  readonly count: number;
} {
  const data = input ?? output;
  if (data instanceof Int32Array) return { type: "i32", count: data.length };
  if (data instanceof Uint16Array) return { type: "bf16", count: data.length };
  return { type: "f32", count: data?.length ?? 0 };
}

/** What settles who gives data to whom. */
export type CallRule = Pick<GroupCall, "operation" | "peer">;

/** Whether the call adds up what it gets. */
export function isSum({ operation }: CallRule): boolean {
  return /^(all-reduce|reduce)/.test(operation);
}

/** The ranks of the group, but `rank`, whose data this call of `rank` waits for. */
export function giversOf({ operation, peer }: CallRule, rank: number, ranks: number): number[] {
  switch (operation) {
    case "send":
      return [];
    case "receive":
      return [peer];
    case "broadcast":
    case "scatter":
    case "scatter-v":
      return rank === peer ? [] : [peer];
    case "reduce":
    case "gather":
    case "gather-v":
      return rank === peer ? others(rank, ranks) : [];
    default:
      return others(rank, ranks);
  }
}

/** The ranks of the group, but `rank`, that get data of this call of `rank`. */
export function takersOf({ operation, peer }: CallRule, rank: number, ranks: number): number[] {
  switch (operation) {
    case "receive":
      return [];
    case "send":
      return [peer];
    case "broadcast":
    case "scatter":
    case "scatter-v":
      return rank === peer ? others(rank, ranks) : [];
    case "reduce":
    case "gather":
    case "gather-v":
      return rank === peer ? [] : [peer];
    default:
      return others(rank, ranks);
  }
}

function others(rank: number, ranks: number): number[] {
  return Array.from({ length: ranks - 1 }, (_, i) => (i < rank ? i : i + 1));
}

/** A part of some data by a split; all of it without one. */
export function partOf(data: Elements, split: Split | undefined, rank: number): Elements {
  if (split === undefined) return data;
  const { counts, offsets } = split;
  const start = offsets?.[rank] ?? counts.slice(0, rank).reduce((a, b) => a + b, 0);
  return data.subarray(start, start + counts[rank]!);
}
