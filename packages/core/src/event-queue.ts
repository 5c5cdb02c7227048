/**
 * The clock of a discrete-event simulation: a four-ary heap over typed arrays that holds
 * (time, payload) and gives events back in order of time, and in order of entry where times are
 * equal, so that a simulation is the same on every run. No allocation per event.
 */
import { TriremeError } from "./error.ts";
import type { Seconds } from "./units.ts";

const arity = 4;

export class EventQueue {
  #times: Float64Array;
  #entries: Float64Array;
  #payloads: Int32Array;
  #size = 0;
  #entered = 0;
  #now: Seconds = 0;

  /** @param capacity Events the queue holds before its arrays grow. */
  constructor(capacity = 256) {
    const slots = Math.max(1, capacity);
    this.#times = new Float64Array(slots);
    this.#entries = new Float64Array(slots);
    this.#payloads = new Int32Array(slots);
  }

  /** Events that wait. */
  get size(): number {
    return this.#size;
  }

  /** Time of the event taken last; 0 before the first. */
  get now(): Seconds {
    return this.#now;
  }

  /** Time of the next event; Infinity when none waits. */
  get next(): Seconds {
    return this.#size === 0 ? Infinity : this.#times[0]!;
  }

  /** Enters an event. `payload` is any 32-bit integer; the caller says what it means. */
  push(time: Seconds, payload: number): void {
    // Written so that NaN is refused too.
    if (!(time >= this.#now)) {
      throw new TriremeError(
        "PAST_EVENT",
        `event at ${time} s, but the clock is at ${this.#now} s`,
      );
    }
    if (this.#size === this.#times.length) this.#grow();
    const entry = this.#entered++;
    let i = this.#size++;
    while (i > 0) {
      const up = Math.floor((i - 1) / arity);
      if (this.#times[up]! <= time) break;
      this.#move(up, i);
      i = up;
    }
    this.#times[i] = time;
    this.#entries[i] = entry;
    this.#payloads[i] = payload;
  }

  /** Takes the next event: moves `now` to its time and returns its payload. */
  pop(): number {
    if (this.#size === 0) throw new TriremeError("NO_EVENT", "pop() on an empty event queue");
    const payload = this.#payloads[0]!;
    this.#now = this.#times[0]!;
    const last = --this.#size;
    const time = this.#times[last]!;
    const entry = this.#entries[last]!;
    let i = 0;
    for (;;) {
      const first = arity * i + 1;
      if (first >= last) break;
      let least = first;
      const end = Math.min(first + arity, last);
      for (let child = first + 1; child < end; child++) {
        if (this.#before(child, this.#times[least]!, this.#entries[least]!)) least = child;
      }
      if (!this.#before(least, time, entry)) break;
      this.#move(least, i);
      i = least;
    }
    this.#times[i] = time;
    this.#entries[i] = entry;
    this.#payloads[i] = this.#payloads[last]!;
    return payload;
  }

  #before(slot: number, time: Seconds, entry: number): boolean {
    const t = this.#times[slot]!;
    return t < time || (t === time && this.#entries[slot]! < entry);
  }

  #move(from: number, to: number): void {
    this.#times[to] = this.#times[from]!;
    this.#entries[to] = this.#entries[from]!;
    this.#payloads[to] = this.#payloads[from]!;
  }

  #grow(): void {
    const slots = this.#times.length * 2;
    const [times, entries, payloads] = [this.#times, this.#entries, this.#payloads];
    this.#times = new Float64Array(slots);
    this.#entries = new Float64Array(slots);
    this.#payloads = new Int32Array(slots);
    this.#times.set(times);
    this.#entries.set(entries);
    this.#payloads.set(payloads);
  }
}
