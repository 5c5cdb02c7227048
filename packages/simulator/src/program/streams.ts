/**
 * The order in which collectives run: each rank puts its collectives in streams, first in first out,
 * and one starts when it stands first in the stream of every member, as kernels of NCCL do. Ranks
 * that enter the same collectives in different orders therefore wait for each other forever.
 *
 * A rank enters collectives in the order of its instructions, so that the queues are known before
 * anything runs: here they are lists of instructions, and for each rank two cursors, how far it has
 * entered, and what is over.
 */
import { type Instructions, argumentAt, codeAt, opcode } from "./instructions.ts";
import type { Program } from "./program.ts";

export class CollectiveStreams {
  readonly #streams: number;
  readonly #code: Instructions;
  readonly #streamOf: Int32Array;
  /** Size of the group of each collective. */
  readonly #sizes: Int32Array;
  /** Instructions that enter, by list × stream in order: those of queue q are `entries[at[q]..at[q + 1] - 1]`. */
  readonly #entries: Int32Array;
  /** By rank × stream: how far it has entered, and the first that is not over. */
  readonly #entered: Uint32Array;
  readonly #head: Uint32Array;
  /** Members at the head of whose stream a collective stands. */
  readonly #ready: Int32Array;

  constructor(program: Program, code: Instructions) {
    const { group, stream } = program.collectives();
    const { streams, ranks } = program;
    const { offsets, listOf } = code;
    this.#streams = streams;
    this.#code = code;
    this.#streamOf = stream;
    const sizes = Int32Array.from(program.groups, (members) => members.length);
    this.#sizes = group.map((one) => sizes[one]!);
    /** A rank of each list: all name collectives of one stream in one place. */
    const someone = new Int32Array(offsets.length - 1);
    listOf.forEach((list, rank) => (someone[list] = rank));
    const at = new Uint32Array(someone.length * streams + 1);
    const each = (visit: (queue: number, i: number) => void): void => {
      for (let list = 0; list < someone.length; list++) {
        for (let i = offsets[list]!; i < offsets[list + 1]!; i++) {
          const does = codeAt(code, i);
          if (does !== opcode.enter && does !== opcode.blockingEnter) continue;
          visit(list * streams + stream[argumentAt(code, someone[list]!, i)]!, i);
        }
      }
    };
    each((queue) => at[queue + 1]!++);
    for (let q = 0; q + 1 < at.length; q++) at[q + 1]! += at[q]!;
    this.#entries = new Int32Array(at[at.length - 1]!);
    const next = at.slice();
    each((queue, i) => (this.#entries[next[queue]!++] = i));
    this.#head = new Uint32Array(ranks * streams);
    listOf.forEach((list, rank) => {
      this.#head.set(at.subarray(list * streams, (list + 1) * streams), rank * streams);
    });
    this.#entered = this.#head.slice();
    this.#ready = new Int32Array(group.length);
  }

  /** A rank enters its next collective, `id`; true when it can start now. */
  enter(rank: number, id: number): boolean {
    const queue = rank * this.#streams + this.#streamOf[id]!;
    return this.#entered[queue]!++ === this.#head[queue]! && this.#reachesHead(id);
  }

  /** The collective of a member of `id`, which is over, that can start now for this member came last; -1: none. */
  after(rank: number, id: number): number {
    const queue = rank * this.#streams + this.#streamOf[id]!;
    const head = ++this.#head[queue]!;
    if (head >= this.#entered[queue]!) return -1;
    const next = argumentAt(this.#code, rank, this.#entries[head]!);
    return this.#reachesHead(next) ? next : -1;
  }

  #reachesHead(id: number): boolean {
    return ++this.#ready[id]! === this.#sizes[id]!;
  }
}
