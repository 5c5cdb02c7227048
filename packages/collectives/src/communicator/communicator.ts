/**
 * The communicator that ranks on threads of one process train with: what it promises. How: a call
 * checks its arguments, announces itself to its group (`group-table.ts`) and becomes a task
 * (`task.ts`) made of messages and at most one sum (`reductions.ts`, `exchanges.ts`).
 */
import { type Seconds, TriremeError } from "@trireme/core";
import { type SharedMemory, arenaLayout } from "./arena.ts";
import type { Elements } from "./element-type.ts";
import type { CopyBytes } from "./copy.ts";
import { Endpoint } from "./endpoint.ts";
import type { Split } from "./exchanges.ts";
import { Group } from "./group.ts";

/** A call that may still be running. */
export interface Work {
  /** Whether it is over; looks once without waiting. */
  readonly done: boolean;
  /**
   * Returns when it is over, moving every outstanding call of this rank meanwhile. Throws on all
   * ranks when any rank fails: `MISMATCH`, `DEADLINE`, `CLOSED` or `ABORTED`.
   */
  wait(): void;
}

/**
 * Operations among the ranks of a group. Calls return at once; data must stay as it is until the
 * work is done. Members make the same collective calls in the same order. Types are f32, i32 (sums
 * wrap) and bf16 in a `Uint16Array` (sums are made in f32 and rounded once, ties to even).
 */
export interface Communicator {
  /** This rank within the group. */
  readonly rank: number;
  readonly ranks: number;
  /**
   * A group of some ranks of this one, in the order given, which is the order of its sums. Every
   * member calls it with the same list; ranks that are not in the list do not call it.
   */
  group(members: readonly number[]): Communicator;
  /** Sends to a rank of the group, in order; may be over before the receiver has called. */
  send(data: Elements, to: number): Work;
  /** Receives what `from` sent, of the same type and count. */
  receive(data: Elements, from: number): Work;
  /** Replaces `data` by its sum over the ranks. */
  allReduce(data: Elements): Work;
  /** Replaces the root's `data` by the sum over the ranks. */
  reduce(data: Elements, root: number): Work;
  /** Gives rank r the sum of segment r of `input`, which is `ranks` times as long as `output`. */
  reduceScatter(input: Elements, output: Elements): Work;
  /** The same with segments of `counts[r]` elements, the same list on all ranks. */
  reduceScatterV(input: Elements, output: Elements, counts: readonly number[]): Work;
  /** Puts rank r's `input` into segment r of every `output`; in place when that is where it lies. */
  allGather(input: Elements, output: Elements): Work;
  /** The same with parts of different size; `split` is the same on all ranks. */
  allGatherV(input: Elements, output: Elements, split: Split): Work;
  /** Copies the root's `data` to all. */
  broadcast(data: Elements, root: number): Work;
  /** Gives rank r part r of the root's `input`, which other ranks leave undefined. */
  scatter(input: Elements | undefined, output: Elements, root: number): Work;
  scatterV(
    input: Elements | undefined,
    output: Elements,
    root: number,
    split: Split | undefined,
  ): Work;
  /** Puts rank r's `input` into part r of the root's `output`, which other ranks leave undefined. */
  gather(input: Elements, output: Elements | undefined, root: number): Work;
  gatherV(
    input: Elements,
    output: Elements | undefined,
    root: number,
    split: Split | undefined,
  ): Work;
  /** Sends part r of `input` to rank r, whose data fills part r of `output`; may be in place. */
  allToAll(input: Elements, output: Elements): Work;
  /** The same with parts of any size, zero included. */
  allToAllV(input: Elements, sends: Split, output: Elements, receives: Split): Work;
  /** Over when every rank has called it. */
  barrier(): Work;
  /** Makes every rank throw `ABORTED` with this reason, here and from now on. */
  abort(reason: string): void;
  /** Finishes all outstanding work; ranks that still wait for this one throw `CLOSED`. */
  close(): void;
}

/** Options of `createCommunicator`. */
export interface CommunicatorOptions {
  /** From `communicatorArena`, the same for all ranks. */
  readonly memory: SharedMemory;
  readonly rank: number;
  readonly ranks: number;
  /** A clock that moves while the thread sleeps. */
  readonly now: () => Seconds;
  /** How long a wait may stand still before all ranks fail. Default 60 s. */
  readonly deadline?: Seconds;
  /** Told once, at half the deadline, what this rank waits for; the wait may still end well. */
  readonly onStall?: (message: string) => void;
  /**
   * Whether each rank has a core to itself: then a rank looks some more, for about 20 µs, before it
   * sleeps. Leave it out where there may be more ranks than cores. Default false.
   */
  readonly ownCore?: boolean;
  /**
   * How bytes are copied between tensors and the arena. Default `TypedArray.set`, which goes word by
   * word where memory is shared; `copyBytes` of `@trireme/collectives/node` is faster.
   */
  readonly copy?: CopyBytes;
}

/**
 * This rank's communicator over all ranks of an arena; called once per rank, on its thread, which
 * must be one that may block (not a browser's main thread).
 */
export function createCommunicator(options: CommunicatorOptions): Communicator {
  const { memory, rank, ranks, now, deadline = 60, onStall, ownCore, copy } = options;
  const layout = arenaLayout(memory);
  if (ranks !== layout.ranks) {
    throw new TriremeError("ARENA", `ranks ${ranks}, but the arena was made for ${layout.ranks}`);
  }
  if (!Number.isInteger(rank) || rank < 0 || rank >= ranks) {
    throw new TriremeError("RANK", `rank ${rank} must be an integer in 0..${ranks - 1}`);
  }
  if (!(deadline > 0)) {
    throw new TriremeError("DEADLINE", `deadline ${deadline} s must be more than 0`);
  }
  const members = Array.from({ length: ranks }, (_, r) => r);
  const endpoint = new Endpoint(memory, rank, now, deadline, { onStall, ownCore, copy });
  return new Group(endpoint, 0, members);
}
