/**
 * A recorder that keeps sums, not spans: for each rank how long it computed, communicated with
 * nothing computed beside it, and stood still, as `statistics` of a timeline has them, and busy
 * seconds and bytes by lane. Memory does not grow with the number of spans but for the gaps of each
 * rank's time, so that a step of 12,288 ranks is summed in a few hundred megabytes.
 */
import type { Seconds } from "@trireme/core";
import { type Lane, categoryOf, laneCode, lanes } from "@trireme/timeline";
import type { Label } from "./label.ts";
import type { Recorder } from "./recorder.ts";

/** Sums of one rank. compute + exposedCommunication + other + idle = makespan. */
export interface RankTotals {
  readonly compute: Seconds;
  readonly exposedCommunication: Seconds;
  /** Loading and the like with nothing else beside it. */
  readonly other: Seconds;
  readonly idle: Seconds;
  /** Spans' times and bytes added up by lane, without regard to what overlaps. */
  readonly lanes: Readonly<Record<Lane, { readonly time: Seconds; readonly bytes: number }>>;
}

/** Disjoint intervals of one rank in ascending order, to which intervals that end later are added. */
class Cover {
  #starts = new Float64Array(4);
  #ends = new Float64Array(4);
  #size = 0;

  /** Adds an interval that ends no earlier than those before. */
  add(start: Seconds, end: Seconds): void {
    let from = start;
    while (this.#size > 0 && this.#ends[this.#size - 1]! >= from) {
      const last = this.#starts[--this.#size]!;
      if (last < from) from = last;
    }
    if (this.#size === this.#starts.length) {
      this.#starts = doubled(this.#starts);
      this.#ends = doubled(this.#ends);
    }
    this.#starts[this.#size] = from;
    this.#ends[this.#size++] = end;
  }

  /** Length of all intervals together. */
  total(): Seconds {
    let sum = 0;
    for (let i = 0; i < this.#size; i++) sum += this.#ends[i]! - this.#starts[i]!;
    return sum;
  }
}

function doubled(a: Float64Array): Float64Array<ArrayBuffer> {
  const grown = new Float64Array(2 * a.length);
  grown.set(a);
  return grown;
}

const computes = 0;
const communicates = 1;

/** Sums spans; what is asked for is up to date at any time. */
export class AggregateRecorder implements Recorder {
  readonly links = false;
  readonly #category: Uint8Array;
  readonly #lane: Uint8Array;
  readonly #bytes: Float64Array;
  readonly #flopsOf: Float64Array;
  readonly #compute: Cover[];
  readonly #busy: Cover[];
  readonly #covered: Cover[];
  readonly #laneTime: Float64Array;
  readonly #laneBytes: Float64Array;
  readonly #flops: Float64Array;
  #spans = 0;
  #end: Seconds = 0;

  /** @param labels Of the program. */
  constructor(labels: readonly Label[], ranks: number) {
    this.#category = Uint8Array.from(labels, ({ kind }) => {
      const category = categoryOf(kind);
      return category === "compute" ? computes : category === "communication" ? communicates : 2;
    });
    this.#lane = Uint8Array.from(labels, ({ lane }) => laneCode(lane));
    this.#bytes = Float64Array.from(labels, ({ bytes }) => bytes ?? 0);
    this.#flopsOf = Float64Array.from(labels, ({ flops }) => flops ?? 0);
    const covers = (): Cover[] => Array.from({ length: ranks }, () => new Cover());
    this.#compute = covers();
    this.#busy = covers();
    this.#covered = covers();
    this.#laneTime = new Float64Array(ranks * lanes.length);
    this.#laneBytes = new Float64Array(ranks * lanes.length);
    this.#flops = new Float64Array(ranks);
  }

  span(rank: number, label: number, start: Seconds, end: Seconds): number {
    const category = this.#category[label]!;
    // Computing alone, computing and communication, and everything: each is a union of its own.
    if (category === computes) this.#compute[rank]!.add(start, end);
    if (category <= communicates) this.#busy[rank]!.add(start, end);
    this.#covered[rank]!.add(start, end);
    const lane = rank * lanes.length + this.#lane[label]!;
    this.#laneTime[lane]! += end - start;
    this.#laneBytes[lane]! += this.#bytes[label]!;
    this.#flops[rank]! += this.#flopsOf[label]!;
    if (end > this.#end) this.#end = end;
    this.#spans++;
    return -1;
  }

  link(): void {
    // Sums have no order.
  }

  /** Spans taken. */
  get spans(): number {
    return this.#spans;
  }

  /** The latest end. */
  get makespan(): Seconds {
    return this.#end;
  }

  /** FLOPs of all spans of a rank. */
  flops(rank: number): number {
    return this.#flops[rank]!;
  }

  /** Sums of a rank. */
  rank(rank: number): RankTotals {
    const compute = this.#compute[rank]!.total();
    const busy = this.#busy[rank]!.total();
    const covered = this.#covered[rank]!.total();
    const laneOf = (lane: number): { time: Seconds; bytes: number } => ({
      time: this.#laneTime[rank * lanes.length + lane]!,
      bytes: this.#laneBytes[rank * lanes.length + lane]!,
    });
    return {
      compute,
      exposedCommunication: Math.max(0, busy - compute),
      other: Math.max(0, covered - busy),
      idle: Math.max(0, this.#end - covered),
      lanes: {
        compute: laneOf(0),
        intra: laneOf(1),
        inter: laneOf(2),
        copy: laneOf(3),
        host: laneOf(4),
      },
    };
  }
}
