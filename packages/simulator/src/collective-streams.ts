/**
 * The order in which collectives run: each rank puts its collectives in streams, first in first out,
 * and one starts when it stands first in the stream of every member, as kernels of NCCL do. Ranks
 * that enter the same collectives in different orders therefore wait for each other forever.
 */
import type { Collective } from "./program.ts";

export class CollectiveStreams {
  readonly #collectives: readonly Collective[];
  readonly #streams: number;
  /** Collectives entered and not over by rank × stream, from `#head` of the list on. */
  readonly #entered: number[][];
  readonly #head: Int32Array;
  /** Members at whose stream's head a collective stands. */
  readonly #atHead: Int32Array;

  constructor(collectives: readonly Collective[], ranks: number, streams: number) {
    this.#collectives = collectives;
    this.#streams = streams;
    this.#entered = Array.from({ length: ranks * streams }, () => []);
    this.#head = new Int32Array(ranks * streams);
    this.#atHead = new Int32Array(collectives.length);
  }

  /** A rank enters a collective; true when it can start now. */
  enter(rank: number, id: number): boolean {
    const stream = rank * this.#streams + this.#collectives[id]!.stream;
    const entered = this.#entered[stream]!;
    return entered.push(id) - 1 === this.#head[stream] && this.#reachesHead(id);
  }

  /** A collective is over: gives those that start now, each with the member that made it ready. */
  finish(id: number): { readonly id: number; readonly rank: number }[] {
    const started: { id: number; rank: number }[] = [];
    const { members, stream } = this.#collectives[id]!;
    for (const rank of members) {
      const place = rank * this.#streams + stream;
      const next = this.#entered[place]![++this.#head[place]!];
      if (next !== undefined && this.#reachesHead(next)) started.push({ id: next, rank });
    }
    return started;
  }

  #reachesHead(id: number): boolean {
    return ++this.#atHead[id]! === this.#collectives[id]!.members.length;
  }
}
