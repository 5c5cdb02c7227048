/** Virtual time: what is to happen, in order of time and, at equal times, of planning. */
import { Heap, type Seconds } from "@trireme/core";

interface Event {
  readonly at: Seconds;
  readonly entry: number;
  readonly run: () => void;
}

export class EventLoop {
  now: Seconds = 0;
  #entries = 0;
  readonly #events = new Heap<Event>((a, b) => a.at < b.at || (a.at === b.at && a.entry < b.entry));

  at(at: Seconds, run: () => void): void {
    this.#events.push({ at: Math.max(at, this.now), entry: this.#entries++, run });
  }

  after(wait: Seconds, run: () => void): void {
    this.at(this.now + wait, run);
  }

  /** Time of the next event; Infinity when none waits. */
  get next(): Seconds {
    return this.#events.peek()?.at ?? Infinity;
  }

  /** Runs the next event. */
  step(): void {
    const event = this.#events.pop();
    if (event === undefined) return;
    this.now = event.at;
    event.run();
  }

  /** Runs events until one is later than `end`, none is left, or `done` says so. */
  run(end: Seconds, done: () => boolean): void {
    while (this.next <= end && !done()) this.step();
  }
}
