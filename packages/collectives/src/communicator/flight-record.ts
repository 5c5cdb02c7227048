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

/** One call of one rank. Times are of the clock the rank was given; `ended` is NaN while it runs. */
export interface Flight extends Call {
  readonly rank: number;
  /** 0 for the communicator of all ranks; others in no stated order. */
  readonly group: number;
  /** Number of the call: within its group, or for sends and receives within their pair; from 1. */
  readonly sequence: number;
  readonly state: "running" | "done";
  readonly started: Seconds;
  readonly ended: Seconds;
}

/** Words of an entry: 0 its number + 1 (0 while written), 1 group, 2 sequence, 3 state, 4.. call. */
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
    const number = this.#count++;
    const at = this.#entry(number);
    Atomics.store(this.#words, at, 0);
    this.#words[at + 1] = group;
    this.#words[at + 2] = sequence;
    this.#words[at + 3] = 1;
    storeCall(this.#words, at + callAt, call);
    this.#times[(at + timesAt) / 2] = time;
    this.#times[(at + timesAt) / 2 + 1] = Number.NaN;
    Atomics.store(this.#words, at, (number + 1) | 0);
    Atomics.store(this.#words, this.#base / 4, this.#count | 0);
    return number;
  }

  end(number: number, time: Seconds): void {
    const at = this.#entry(number);
    if (Atomics.load(this.#words, at) !== ((number + 1) | 0)) return;
    this.#times[(at + timesAt) / 2 + 1] = time;
    Atomics.store(this.#words, at + 3, 2);
  }

  #entry(number: number): number {
    return (this.#base + line + (number % flightEntries) * flightEntryBytes) / 4;
  }
}

/** The last calls of a rank, oldest first; at most 64. */
export function flightRecord(memory: SharedMemory, rank: number): Flight[] {
  const layout = arenaLayout(memory);
  const words = new Int32Array(memory.buffer);
  const times = new Float64Array(memory.buffer);
  const base = layout.flights + rank * flightBytes;
  const count = Atomics.load(words, base / 4);
  const flights: Flight[] = [];
  for (let number = Math.max(0, count - flightEntries); number < count; number++) {
    const at = (base + line + (number % flightEntries) * flightEntryBytes) / 4;
    if (Atomics.load(words, at) !== number + 1) continue;
    const started = times[(at + timesAt) / 2]!;
    const ended = times[(at + timesAt) / 2 + 1]!;
    flights.push({
      rank,
      group: words[at + 1]!,
      sequence: words[at + 2]!,
      state: words[at + 3] === 2 ? "done" : "running",
      started,
      ended,
      ...loadCall(words, at + callAt),
    });
  }
  return flights;
}
