/**
 * What the ranks of a run gave each other: one shard for each rank, with what that rank called and
 * when, and the data that others got from it. The shards of the ranks that are not run stand for them
 * in an emulation (PrismLLM, arXiv 2605.15617).
 */
import type { ElementType, Operation } from "@trireme/collectives";
import type { Bytes, Seconds } from "@trireme/core";

/** The runs of ranks that talk to each other. */
export type TurnKind = "train" | "evaluate" | "load";

/**
 * What a rank did, in its order. `gap`: its own time since the event before, waits not counted.
 * - `group`: it joined the group of these world ranks, the `ordinal`-th of them; groups are numbered
 *   by their place in this list, from 0, which is all ranks.
 * - `turn`: it was asked for something.
 * - `call`: it called `operation` for the `sequence`-th time (from 1; sends and receives count by
 *   peer). `peer` is root or peer in the group, −1 without; `count` elements of `type` were what it
 *   gave, or got where it gave none; `digest` is of what it gave. From byte `offset` of the shard's
 *   data lie the elements that it gave, little-endian; −1 where they are not kept. `parts`, where each
 *   rank of the group got another part of them: their elements, one part after the other.
 * - `wait`: it waited for the `call`-th call of the turn, from 0.
 * - `reply`: what it told at the end of the turn.
 */
export type TraceEvent =
  | { readonly kind: "group"; readonly members: readonly number[]; readonly ordinal: number }
  | { readonly kind: "turn"; readonly request: TurnKind }
  | CallEvent
  | { readonly kind: "wait"; readonly gap: Seconds; readonly call: number }
  | { readonly kind: "reply"; readonly lossSum: number };

/** See `TraceEvent`. */
export interface CallEvent {
  readonly kind: "call";
  readonly gap: Seconds;
  readonly operation: Operation;
  readonly group: number;
  readonly sequence: number;
  readonly peer: number;
  readonly type: ElementType;
  readonly count: number;
  readonly digest: number;
  readonly offset: Bytes;
  readonly parts?: readonly number[];
}

/** One rank's part of a trace. */
export interface TraceShard {
  readonly rank: number;
  readonly events: readonly TraceEvent[];
  /** Its data: in shared memory, or the path of a file. */
  readonly data: SharedArrayBuffer | string;
}

/** The messages of a run, by rank. */
export interface Trace {
  /** By rank, all of them. */
  readonly shards: readonly TraceShard[];
  /** Seed of the run that it is of. */
  readonly seed: number;
}

/** A group by its members and which of their groups it is: the same on all of them. */
export function groupName(members: readonly number[], ordinal: number): string {
  return `${members.join()}#${ordinal}`;
}

/** What all members name one call by. `rank` is the caller's in the group. */
export function callName(
  group: string,
  { operation, peer, sequence }: Pick<CallEvent, "operation" | "peer" | "sequence">,
  rank: number,
): string {
  if (operation === "send") return `${group} ${rank}>${peer} ${sequence}`;
  if (operation === "receive") return `${group} ${peer}>${rank} ${sequence}`;
  return `${group} ${sequence}`;
}

/** Numbers the calls of a group: collectives in one row, sends and receives in one for each peer. */
export class CallNumbers {
  readonly #counts = new Map<string, number>();

  next({ operation, peer }: Pick<CallEvent, "operation" | "peer">): number {
    const row = operation === "send" || operation === "receive" ? `${operation} ${peer}` : "";
    const sequence = (this.#counts.get(row) ?? 0) + 1;
    this.#counts.set(row, sequence);
    return sequence;
  }
}
