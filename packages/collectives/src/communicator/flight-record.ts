/**
 * The last 64 calls of each rank, kept in the arena so that they can be read after a failure, also
 * by a thread that takes no part (compare PyTorch's flight recorder).
 */
import type { Seconds } from "@trireme/core";
import {
  type ArenaLayout,
  type SharedMemory,
  arenaLayout,
  flightBytes,
  flightEntries,
  flightEntryBytes,
  line,
} from "./arena.ts";
import { type Call, callWords, loadCall, storeCall } from "./operation.ts";
import { following } from "./sequence.ts";

/** One call of one rank. Times are of the clock the rank was given; `ended` is NaN while it runs. */
export interface Flight extends Call {
  readonly rank: number;
  /** 0 for the communicator of all ranks; others in no stated order. */
  readonly group: number;
  /** Number of the call, modulo 2^32: within its group, or for sends and receives within their pair; from 1. */
  readonly sequence: number;
  readonly state: "running" | "done";
  readonly started: Seconds;
  readonly ended: Seconds;
}

/** Words of an entry: 0 the number after its own (0 while written), 1 group, 2 sequence, 3 state, 4.. call. */
const callAt = 4;
const timesAt = callAt + callWords + 1;

/** The writing end of one rank's record. */
export class FlightRecorder {
  readonly #words: Int32Array;
  readonly #times: Float64Array;
  readonly #base: number;
  #count: number;

  constructor(words: Int32Array, layout: ArenaLayout, rank: number) {
    this.#words = words;
    this.#base = layout.flights + rank * flightBytes;
    this.#times = new Float64Array(words.buffer);
    this.#count = Atomics.load(words, this.#base / 4);
  }

  /** Enters a call that starts; returns its number, to end it with. */
  start(group: number, sequence: number, call: Call, time: Seconds): number {
    const number = this.#count;
    this.#count = (number + 1) | 0;
    const at = this.#entry(number);
    Atomics.store(this.#words, at, 0);
    this.#words[at + 1] = group;
    this.#words[at + 2] = sequence;
    this.#words[at + 3] = 1;
    storeCall(this.#words, at + callAt, call);
    this.#times[(at + timesAt) / 2] = time;
    this.#times[(at + timesAt) / 2 + 1] = Number.NaN;
    Atomics.store(this.#words, at, following(number));
    Atomics.store(this.#words, this.#base / 4, this.#count);
    return number;
  }

  end(number: number, time: Seconds): void {
    const at = this.#entry(number);
    if (Atomics.load(this.#words, at) !== following(number)) return;
    this.#times[(at + timesAt) / 2 + 1] = time;
    Atomics.store(this.#words, at + 3, 2);
  }

  #entry(number: number): number {
    return entryWord(this.#base, number);
  }
}

/** The word at which the entry of a call begins; its number goes round in 32 bits, which 64 divide. */
function entryWord(base: number, number: number): number {
  return (base + line + ((number >>> 0) % flightEntries) * flightEntryBytes) / 4;
}

/** The last calls of a rank, oldest first; at most 64. */
export function flightRecord(memory: SharedMemory, rank: number): Flight[] {
  const layout = arenaLayout(memory);
  const words = new Int32Array(memory.buffer);
  const times = new Float64Array(memory.buffer);
  const base = layout.flights + rank * flightBytes;
  const count = Atomics.load(words, base / 4);
  const flights: Flight[] = [];
  for (let back = flightEntries; back > 0; back--) {
    const number = (count - back) | 0;
    const at = entryWord(base, number);
    // Fewer may have been made, and the oldest may have been written over since.
    if (Atomics.load(words, at) !== following(number)) continue;
    const started = times[(at + timesAt) / 2]!;
    const ended = times[(at + timesAt) / 2 + 1]!;
    flights.push({
      rank,
      group: words[at + 1]!,
      sequence: words[at + 2]! >>> 0,
      state: words[at + 3] === 2 ? "done" : "running",
      started,
      ended,
      ...loadCall(words, at + callAt),
    });
  }
  return flights;
}
