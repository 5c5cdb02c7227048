/**
 * The clock of a discrete-event simulation: gives (time, payload) back in order of time, and in order
 * of entry where times are equal, so that a simulation is the same on every run. No allocation per
 * event.
 *
 * Where many things happen at once, as in a machine whose parts do the same, an event joins the others
 * of its time in a list, and only times are sorted, in a four-ary heap. The list of a time is looked up
 * in a small table that forgets: a time that was forgotten gets a second list, which comes after the
 * first.
 */
import { TriremeError } from "./error.ts";
import type { Seconds } from "./units.ts";

const arity = 4;
const tableBits = 10;

/** A time as its 64 bits, of which the table's place is a hash. */
const time64 = new Float64Array(1);
const bits32 = new Uint32Array(time64.buffer);

export class EventQueue {
  /** The heap: times, in order of entry where equal, and the list of each. */
  #times: Float64Array;
  #entries: Float64Array;
  #lists: Int32Array;
  #heapSize = 0;
  /** Lists by number: time, NaN when not in use; first event, of an unused list the next such; last event. */
  #listTime: Float64Array;
  #first: Int32Array;
  #last: Int32Array;
  #freeList = -1;
  #listsMade = 0;
  /** Events by number: payload, and the next of its list, or of those not in use. */
  #payloads: Int32Array;
  #next: Int32Array;
  #freeEvent = -1;
  #eventsMade = 0;
  /** The list that had a time of each hash last. */
  readonly #table = new Int32Array(2 ** tableBits);
  #size = 0;
  #entered = 0;
  #now: Seconds = 0;

  /** @param capacity Events the queue holds before its arrays grow. */
  constructor(capacity = 256) {
    const slots = Math.max(1, capacity);
    this.#payloads = new Int32Array(slots);
    this.#next = new Int32Array(slots);
    const times = Math.min(slots, 256);
    this.#times = new Float64Array(times);
    this.#entries = new Float64Array(times);
    this.#lists = new Int32Array(times);
    this.#listTime = new Float64Array(times).fill(Number.NaN);
    this.#first = new Int32Array(times);
    this.#last = new Int32Array(times);
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
    return this.#heapSize === 0 ? Infinity : this.#times[0]!;
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
    const event = this.#event(payload);
    this.#size++;
    // 0 and -0 are one time with two sets of bits.
    time64[0] = time + 0;
    const hash = Math.imul(bits32[0]! ^ Math.imul(bits32[1]!, 0x85_eb_ca_6b), 0x9e_37_79_b1);
    const place = hash >>> (32 - tableBits);
    const list = this.#table[place]!;
    if (this.#listTime[list] === time) {
      this.#next[this.#last[list]!] = event;
      this.#last[list] = event;
    } else this.#table[place] = this.#enter(time, event);
  }

  /** Takes the next event: moves `now` to its time and returns its payload. */
  pop(): number {
    if (this.#size === 0) throw new TriremeError("NO_EVENT", "pop() on an empty event queue");
    const list = this.#lists[0]!;
    const event = this.#first[list]!;
    this.#now = this.#times[0]!;
    this.#size--;
    if (event === this.#last[list]) {
      this.#listTime[list] = Number.NaN;
      this.#first[list] = this.#freeList;
      this.#freeList = list;
      this.#dropTime();
    } else this.#first[list] = this.#next[event]!;
    this.#next[event] = this.#freeEvent;
    this.#freeEvent = event;
    return this.#payloads[event]!;
  }

  #event(payload: number): number {
    let event = this.#freeEvent;
    if (event >= 0) this.#freeEvent = this.#next[event]!;
    else {
      event = this.#eventsMade++;
      if (event === this.#payloads.length) {
        this.#payloads = doubledIntegers(this.#payloads);
        this.#next = doubledIntegers(this.#next);
      }
    }
    this.#payloads[event] = payload;
    return event;
  }

  /** Makes a list of one event and puts its time into the heap. */
  #enter(time: Seconds, event: number): number {
    let list = this.#freeList;
    if (list >= 0) this.#freeList = this.#first[list]!;
    else {
      list = this.#listsMade++;
      if (list === this.#times.length) this.#growTimes();
    }
    this.#listTime[list] = time;
    this.#first[list] = event;
    this.#last[list] = event;
    const times = this.#times;
    let i = this.#heapSize++;
    while (i > 0) {
      const up = (i - 1) >> 2;
      if (times[up]! <= time) break;
      this.#move(up, i);
      i = up;
    }
    times[i] = time;
    this.#entries[i] = this.#entered++;
    this.#lists[i] = list;
    return list;
  }

  #dropTime(): void {
    const last = --this.#heapSize;
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
    this.#lists[i] = this.#lists[last]!;
  }

  #before(slot: number, time: Seconds, entry: number): boolean {
    const t = this.#times[slot]!;
    return t < time || (t === time && this.#entries[slot]! < entry);
  }

  #move(from: number, to: number): void {
    this.#times[to] = this.#times[from]!;
    this.#entries[to] = this.#entries[from]!;
    this.#lists[to] = this.#lists[from]!;
  }

  #growTimes(): void {
    this.#times = doubledReals(this.#times);
    this.#entries = doubledReals(this.#entries);
    this.#lists = doubledIntegers(this.#lists);
    this.#listTime = doubledReals(this.#listTime);
    this.#first = doubledIntegers(this.#first);
    this.#last = doubledIntegers(this.#last);
  }
}

function doubledReals(array: Float64Array): Float64Array {
  const grown = new Float64Array(2 * array.length);
  grown.set(array);
  return grown;
}

function doubledIntegers(array: Int32Array): Int32Array {
  const grown = new Int32Array(2 * array.length);
  grown.set(array);
  return grown;
}
