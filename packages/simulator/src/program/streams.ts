/**
 * The order in which collectives run: each rank puts its collectives in streams, first in first out,
 * and one starts when it stands first in the stream of every member, as kernels of NCCL do. Ranks
 * that enter the same collectives in different orders therefore wait for each other forever.
 *
 * A rank enters collectives in the order of its instructions, so that the queues are known before
 * anything runs: here they are lists with two cursors, how far a rank has entered, and what is over.
 */
import { type Instructions, type Program, opcode } from "./program.ts";

export class CollectiveStreams {
  readonly #streams: number;
  readonly #groups: readonly Int32Array[];
  readonly #groupOf: Int32Array;
  readonly #streamOf: Int32Array;
  /** Collectives by rank × stream in order of entry: those of queue q are `entries[at[q]..at[q + 1] - 1]`. */
  readonly #entries: Int32Array;
  readonly #entered: Uint32Array;
  readonly #head: Uint32Array;
  /** Members at the head of whose stream a collective stands. */
  readonly #ready: Int32Array;

  constructor(program: Program, instructions: Instructions) {
    const { group, stream } = program.collectives();
    const { ranks, streams } = program;
    const { offsets, opcodes, arguments: args } = instructions;
    this.#streams = streams;
    this.#groups = program.groups;
    this.#groupOf = group;
    this.#streamOf = stream;
    const at = new Uint32Array(ranks * streams + 1);
    const each = (visit: (queue: number, id: number) => void): void => {
      for (let rank = 0; rank < ranks; rank++) {
        for (let i = offsets[rank]!; i < offsets[rank + 1]!; i++) {
          const code = opcodes[i]!;
          if (code !== opcode.enter && code !== opcode.blockingEnter) continue;
          visit(rank * streams + stream[args[i]!]!, args[i]!);
        }
      }
    };
    each((queue) => at[queue + 1]!++);
    for (let q = 0; q + 1 < at.length; q++) at[q + 1]! += at[q]!;
    this.#entries = new Int32Array(at[at.length - 1]!);
    const next = at.slice();
    each((queue, id) => (this.#entries[next[queue]!++] = id));
    this.#head = at.slice();
    this.#entered = at.slice();
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
    const next = this.#entries[head]!;
    return this.#reachesHead(next) ? next : -1;
  }

  #reachesHead(id: number): boolean {
    return ++this.#ready[id]! === this.#groups[this.#groupOf[id]!]!.length;
  }
}
