/**
 * Shared memory between the ranks that are run and the thread that stands for the others: who has made
 * how many calls of the turn, and which of them are ready. Nobody spins: each sleeps on a bell.
 */
import { type Seconds, TriremeError } from "@trireme/core";

/** Words of the head: the assistant's bell; whether anybody has failed. */
const assistantBell = 0;
const failed = 1;
const headWords = 16;

/** Words of a rank before those of its calls: its bell, and the calls that it has made in this turn. */
const rankBell = 0;
const calledWord = 1;
const rankHead = 16;

/** How long a rank sleeps while messages of its own may have to be moved. */
const pollSeconds = 1e-3;

export class PaceBoard {
  readonly buffer: SharedArrayBuffer;
  readonly #words: Int32Array;
  readonly #stride: number;

  constructor(buffer: SharedArrayBuffer, ranks: number) {
    this.buffer = buffer;
    this.#words = new Int32Array(buffer);
    this.#stride = (this.#words.length - headWords) / ranks;
  }

  /** For so many ranks that are run, with at most `calls` calls in a turn. */
  static create(ranks: number, calls: number): PaceBoard {
    const words = headWords + ranks * (rankHead + calls);
    return new PaceBoard(new SharedArrayBuffer(words * 4), ranks);
  }

  /** A rank that is run, by its place among them, has made its next call. */
  call(place: number): void {
    Atomics.add(this.#words, this.#rank(place) + calledWord, 1);
    this.#ring(assistantBell);
  }

  /** Calls that the rank has made since the beginning. */
  calls(place: number): number {
    return Atomics.load(this.#words, this.#rank(place) + calledWord);
  }

  /** Tells the rank that a call of turn `turn` (from 1) is ready. */
  release(place: number, call: number, turn: number): void {
    Atomics.store(this.#words, this.#rank(place) + rankHead + call, turn);
    this.#ring(this.#rank(place) + rankBell);
  }

  isReady(place: number, call: number, turn: number): boolean {
    return Atomics.load(this.#words, this.#rank(place) + rankHead + call) === turn;
  }

  /** Sleeps until the call is ready. `isBusy` moves messages, and says whether there are more. */
  await(
    place: number,
    call: number,
    turn: number,
    deadline: Seconds,
    isBusy: () => boolean,
    what: () => string,
  ): void {
    const bell = this.#rank(place) + rankBell;
    const end = performance.now() + deadline * 1e3;
    while (!this.isReady(place, call, turn)) {
      const seen = Atomics.load(this.#words, bell);
      const busy = isBusy();
      this.check();
      if (this.isReady(place, call, turn)) return;
      const left = end - performance.now();
      if (left <= 0) {
        throw new TriremeError("DEADLINE", `${what()} was not over in ${deadline} s`);
      }
      Atomics.wait(this.#words, bell, seen, busy ? Math.min(left, pollSeconds * 1e3) : left);
    }
  }

  /** What the assistant has heard; give it to `sleep`. */
  get heard(): number {
    return Atomics.load(this.#words, assistantBell);
  }

  /** The assistant's sleep, until anybody rings after `heard`. */
  sleep(heard: number, seconds: Seconds): void {
    Atomics.wait(this.#words, assistantBell, heard, Math.min(seconds * 1e3, 2 ** 31 - 1));
  }

  /** Ends all waits: every one throws `ABORTED`. */
  fail(): void {
    Atomics.store(this.#words, failed, 1);
    for (let at = assistantBell; at < this.#words.length; at = this.#after(at)) this.#ring(at);
  }

  /** Throws `ABORTED` when anybody has failed. */
  check(): void {
    if (Atomics.load(this.#words, failed) === 0) return;
    throw new TriremeError("ABORTED", "another rank failed");
  }

  #after(bell: number): number {
    return bell === assistantBell ? headWords : bell + this.#stride;
  }

  #rank(place: number): number {
    return headWords + place * this.#stride;
  }

  #ring(bell: number): void {
    Atomics.add(this.#words, bell, 1);
    Atomics.notify(this.#words, bell);
  }
}
