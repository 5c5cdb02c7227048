/**
 * A recorder that keeps sums, not spans: for each rank how long it computed, communicated with
 * nothing computed beside it, and stood still, as `statistics` of a timeline has them, and busy
 * seconds and bytes by lane. Memory does not grow with the number of spans but for the gaps of each
 * rank's time, so that a step of 12,288 ranks is summed in a few hundred megabytes.
 */
import type { Seconds } from "@trireme/core";
import { type Lane, categoryOf, laneCode, lanes } from "@trireme/timeline";
import { Covers, covered, union } from "./covers.ts";
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

const computes = 0;
const communicates = 1;
const columns = 2 * lanes.length + 1;

/** Sums spans; what is asked for is up to date at any time. */
export class AggregateRecorder implements Recorder {
  readonly links = false;
  readonly #category: Uint8Array;
  readonly #lane: Uint8Array;
  readonly #bytes: Float64Array;
  readonly #flopsOf: Float64Array;
  /** Computing, computing and communication, and what is neither: each a union of its own. */
  readonly #compute: Covers;
  readonly #busy: Covers;
  readonly #rest: Covers;
  /** By rank: times of each lane, then bytes of each, then FLOPs. */
  readonly #sums: Float64Array;
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
    this.#compute = new Covers(ranks);
    this.#busy = new Covers(ranks);
    this.#rest = new Covers(ranks);
    this.#sums = new Float64Array(ranks * columns);
  }

  span(rank: number, label: number, start: Seconds, end: Seconds): number {
    const category = this.#category[label]!;
    if (category === computes) this.#compute.add(rank, start, end);
    if (category <= communicates) this.#busy.add(rank, start, end);
    else this.#rest.add(rank, start, end);
    const sums = this.#sums;
    const row = rank * columns;
    const lane = row + this.#lane[label]!;
    sums[lane]! += end - start;
    sums[lane + lanes.length]! += this.#bytes[label]!;
    sums[row + columns - 1]! += this.#flopsOf[label]!;
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
    return this.#sums[rank * columns + columns - 1]!;
  }

  /** Sums of a rank. */
  rank(rank: number): RankTotals {
    const busyTimes = this.#busy.intervals(rank);
    const compute = covered(this.#compute.intervals(rank));
    const busy = covered(busyTimes);
    const all = covered(union(busyTimes, this.#rest.intervals(rank)));
    const row = rank * columns;
    const laneOf = (lane: number): { time: Seconds; bytes: number } => ({
      time: this.#sums[row + lane]!,
      bytes: this.#sums[row + lanes.length + lane]!,
    });
    return {
      compute,
      exposedCommunication: Math.max(0, busy - compute),
      other: Math.max(0, all - busy),
      idle: Math.max(0, this.#end - all),
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
