/** Communication as it is alone: each message and collective takes the time that it is declared with. */
import type { EventQueue, Seconds } from "@trireme/core";
import type { Program } from "./program.ts";
import { playEvent } from "./play-event.ts";

/** What carries the messages and collectives of a program, and says by events when they are there. */
export interface Ways {
  /** When each message left its sender. */
  readonly left: Float64Array;
  /** A rank sends a message now: it leaves when those before it have. */
  send(rank: number, id: number): void;
  /** A collective starts now. */
  collect(id: number): void;
  /** Everything that happens now has happened. */
  settle(): void;
  /** An event of its own. */
  moved(id: number): void;
}

export class OwnWays implements Ways {
  readonly left: Float64Array;
  readonly #queue: EventQueue;
  readonly #duration: Float64Array;
  readonly #latency: Float64Array;
  readonly #collective: Float64Array;
  /** When the way out of each rank is free. */
  readonly #free: Float64Array;

  constructor(program: Program, queue: EventQueue) {
    const { duration, latency } = program.messages();
    this.left = new Float64Array(duration.length);
    this.#queue = queue;
    this.#duration = duration;
    this.#latency = latency;
    this.#collective = program.collectives().duration;
    this.#free = new Float64Array(program.ranks);
  }

  send(rank: number, id: number): void {
    const start: Seconds = Math.max(this.#queue.now, this.#free[rank]!);
    const free = start + this.#duration[id]!;
    this.#free[rank] = free;
    this.left[id] = start;
    this.#queue.push(free + this.#latency[id]!, playEvent(id, "arrived"));
  }

  collect(id: number): void {
    this.#queue.push(this.#queue.now + this.#collective[id]!, playEvent(id, "collected"));
  }

  settle(): void {
    // Nothing that happens changes what is under way.
  }

  moved(): void {
    // It has no events of its own.
  }
}
