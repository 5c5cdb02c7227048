/** One rank's way through a trace: every call that it makes is held against what the trace says. */
import type { Communicator, Work } from "@trireme/collectives";
import { type Seconds, TriremeError } from "@trireme/core";
import { digest } from "./digest.ts";
import { type GroupCall, callExtent } from "./group-call.ts";
import type { PaceBoard } from "./pace-board.ts";
import { type ShardGroup, type ShardTurn, type ShardTurns, turnAt } from "./shard-turns.ts";
import { type CallEvent, type Trace, type TurnKind } from "./trace.ts";
import { ShardData } from "./trace-data.ts";

/** What a rank that is run needs of an emulation. */
export interface ReplayOptions {
  readonly rank: number;
  /** World ranks that are run, ascending. */
  readonly live: readonly number[];
  /** Among these. */
  readonly real: Communicator;
  /** What all ranks do. */
  readonly trace: Trace;
  /** Whether messages carry data; without, every turn of a kind is the same. */
  readonly carries: boolean;
  /** Where the others say how far they are; left out, they are never waited for. */
  readonly board: PaceBoard | undefined;
  readonly deadline: Seconds;
}

/** One rank's way through the turns of a trace. */
export class Replay {
  readonly options: ReplayOptions;
  readonly #own: ShardTurns;
  readonly #data = new Map<number, ShardData>();
  #turns = 0;
  #turn: ShardTurn | undefined;
  #calls = 0;
  #moving: Work[] = [];

  constructor(options: ReplayOptions, own: ShardTurns) {
    this.options = options;
    this.#own = own;
  }

  beginTurn(request: TurnKind): void {
    this.#turn = turnAt(this.#own, this.#turns++, request, !this.options.carries);
    this.#calls = 0;
  }

  /** Throws `TRACE` where the trace says that this rank calls once more. */
  endTurn(): void {
    const left = this.#turn!.calls[this.#calls];
    if (left !== undefined) throw this.#mismatch(left, "is in the trace, but was not called");
  }

  /** Holds a call against the trace; returns its number in the turn. */
  next(group: ShardGroup, sequence: number, call: GroupCall): number {
    const expected = this.#turn?.calls[this.#calls];
    const { operation, peer } = call;
    const here = { operation, peer, sequence, ...callExtent(call) };
    const among = `among ranks ${group.members.join(", ")}`;
    if (expected === undefined) throw this.#mismatch(here, "is not in the trace");
    const { name, members } = this.#own.groups[expected.group]!;
    const isSame =
      name === group.name &&
      operation === expected.operation &&
      peer === expected.peer &&
      here.count === expected.count &&
      here.type === expected.type;
    if (!isSame) {
      const theirs = `${title(expected)} of ${expected.count} ${expected.type} among ranks ${members.join(", ")}`;
      throw this.#mismatch(
        here,
        `of ${here.count} ${here.type} ${among} is ${theirs} in the trace; record the run again with this plan`,
      );
    }
    const { carries, trace } = this.options;
    if (carries && digest(call.input) !== expected.digest) {
      throw this.#mismatch(
        here,
        `${among} gives other numbers than the trace, which is of seed ${trace.seed}; record the run again with this seed, data and kernels`,
      );
    }
    return this.#calls++;
  }

  /** The turn, from 1. */
  get turn(): number {
    return this.#turns;
  }

  /** What rank `rank` of the world gave. */
  data(rank: number): ShardData {
    let data = this.#data.get(rank);
    if (data === undefined) {
      data = new ShardData(this.options.trace.shards[rank]!);
      this.#data.set(rank, data);
    }
    return data;
  }

  /** Remembers messages that have to be moved while this rank waits for something else. */
  moves(works: readonly Work[]): void {
    if (this.options.board !== undefined) this.#moving.push(...works);
  }

  /** Moves messages; whether there are more. */
  poll(): boolean {
    this.#moving = this.#moving.filter((work) => !work.done);
    return this.#moving.length > 0;
  }

  #mismatch(call: Pick<CallEvent, "operation" | "peer" | "sequence">, what: string): TriremeError {
    return new TriremeError("TRACE", `${title(call)} ${what}`);
  }
}

/** A call for people. */
export function title({
  operation,
  peer,
  sequence,
}: Pick<CallEvent, "operation" | "peer" | "sequence">): string {
  if (operation === "send") return `send ${sequence} to ${peer}`;
  if (operation === "receive") return `receive ${sequence} from ${peer}`;
  return `${operation} ${sequence}`;
}
