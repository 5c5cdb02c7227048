/**
 * The ranks that are not run, in one turn: each makes its calls when its own time and what it waits
 * for allow it, as the sandboxed ranks around it go on in theirs. Nothing here keeps the clock.
 */
import type { Seconds } from "@trireme/core";
import { giversOf } from "./group-call.ts";
import type { ShardTurn, ShardTurns } from "./shard-turns.ts";
import { type CallEvent, callName } from "./trace.ts";

/** Shorter times of a rank's own are those between two calls: nothing in which it could be late. */
const leastWork = 1e-3;

/** One call of one rank, and what it waits for. */
interface PlacedCall {
  readonly rank: number;
  /** In its rank's turn. */
  readonly index: number;
  /** What all members name it by. */
  readonly name: string;
  /** Members whose data it needs and that have not called. */
  missing: number;
  /** When the last of them called. */
  readyAt: Seconds;
}

/** A rank that is not run. */
interface VirtualRank {
  readonly rank: number;
  readonly turn: ShardTurn;
  readonly calls: readonly PlacedCall[];
  /** The next event, and the rank's own time before it. */
  cursor: number;
  called: number;
  time: Seconds;
}

/** A call of a rank that is run, which is over. */
export interface ReadyCall {
  readonly rank: number;
  readonly index: number;
}

export class VirtualTurn {
  readonly #virtual: VirtualRank[] = [];
  readonly #live = new Map<number, readonly PlacedCall[]>();
  /** By call, and by the rank whose data they need. */
  readonly #dependents = new Map<string, PlacedCall[]>();
  #ready: ReadyCall[] = [];

  /** @param live World ranks that are run; the others begin their turn at `start`. */
  constructor(
    ranks: readonly { readonly shard: ShardTurns; readonly turn: ShardTurn }[],
    live: ReadonlySet<number>,
    start: Seconds,
  ) {
    for (const { shard, turn } of ranks) {
      const { rank } = shard;
      const calls = turn.calls.map((call, index) => this.#place(shard, call, index));
      if (live.has(rank)) this.#live.set(rank, calls);
      else this.#virtual.push({ rank, turn, calls, cursor: 0, called: 0, time: start });
    }
  }

  /** Whether every rank that is not run has done all that it had to. */
  get done(): boolean {
    return this.#virtual.every(({ turn, cursor }) => cursor === turn.events.length);
  }

  /** Tells that a rank that is run has made a call of its turn. */
  called(rank: number, index: number, time: Seconds): void {
    this.#arrive(this.#live.get(rank)![index]!, time);
  }

  /**
   * Lets the ranks go on until `now`; returns when the next of them does something by itself,
   * `Infinity` when all wait for those that are run.
   */
  advance(now: Seconds): Seconds {
    let next = Infinity;
    for (let moved = true; moved;) {
      moved = false;
      next = Infinity;
      for (const rank of this.#virtual) {
        while (this.#due(rank) <= now) {
          this.#step(rank, now);
          moved = true;
        }
        next = Math.min(next, this.#due(rank));
      }
    }
    return next;
  }

  /** Calls of ranks that are run which have become ready since this was last asked. */
  takeReady(): readonly ReadyCall[] {
    const ready = this.#ready.filter(({ rank }) => this.#live.has(rank));
    this.#ready = [];
    return ready;
  }

  /** What the ranks wait for that have not done all. */
  get waiting(): string {
    const blocked = this.#virtual.find(({ turn, cursor }) => cursor < turn.events.length);
    if (blocked === undefined) return "no rank waits";
    const event = blocked.turn.events[blocked.cursor]!;
    const call = event.kind === "call" ? event : blocked.turn.calls[event.call]!;
    return `rank ${blocked.rank}, which is not run, is at ${call.operation} ${call.sequence}`;
  }

  #place(shard: ShardTurns, call: CallEvent, index: number): PlacedCall {
    const { name: group, members } = shard.groups[call.group]!;
    const self = members.indexOf(shard.rank);
    const name = callName(group, call, self);
    const givers = giversOf(call, self, members.length);
    const placed = { rank: shard.rank, index, name, missing: givers.length, readyAt: 0 };
    for (const giver of givers) {
      const key = `${name} of ${members[giver]!}`;
      const waiting = this.#dependents.get(key);
      if (waiting === undefined) this.#dependents.set(key, [placed]);
      else waiting.push(placed);
    }
    if (givers.length === 0) this.#ready.push(placed);
    return placed;
  }

  /** When the rank's next event comes; `Infinity` when it waits for another rank, or has done all. */
  #due({ turn, calls, cursor, time }: VirtualRank): Seconds {
    const event = turn.events[cursor];
    if (event === undefined) return Infinity;
    const due = time + event.gap;
    if (event.kind === "call") return due;
    const { missing, readyAt } = calls[event.call]!;
    return missing > 0 ? Infinity : Math.max(due, readyAt);
  }

  #step(rank: VirtualRank, now: Seconds): void {
    const { kind, gap } = rank.turn.events[rank.cursor]!;
    const due = this.#due(rank);
    // A rank that works until then is as late as this machine is now.
    rank.time = gap >= leastWork && due === rank.time + gap ? now : due;
    rank.cursor++;
    if (kind === "call") this.#arrive(rank.calls[rank.called++]!, rank.time);
  }

  /** A member has called: those that need its data have it. */
  #arrive({ name, rank }: PlacedCall, time: Seconds): void {
    for (const call of this.#dependents.get(`${name} of ${rank}`) ?? []) {
      call.readyAt = Math.max(call.readyAt, time);
      if (--call.missing === 0) this.#ready.push(call);
    }
  }
}
