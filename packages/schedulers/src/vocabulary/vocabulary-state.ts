/** How far a schedule with vocabulary passes has come: when inputs are there, and when every rank has run a pass. */
import type { Seconds } from "@trireme/core";
import { kindCode } from "../action.ts";
import type { Schedule } from "../schedule.ts";

/** Exchanges of one microbatch among all ranks. */
export interface VocabularyExchanges {
  /** The last stage's output, handed out before S. */
  readonly output: Seconds;
  /** Maxima and sums of all ranks, behind the last S. */
  readonly statistics: Seconds;
  /** The gradient of the output: behind the statistics with one barrier, behind the last T with two. */
  readonly gradient: Seconds;
}

/** Transfers from stage s to s + 1 and to s − 1. */
interface Transfers {
  readonly up: Float64Array;
  readonly down: Float64Array;
}

export class VocabularyState {
  readonly #s: Schedule;
  readonly #barriers: 1 | 2;
  readonly #transfers: Transfers;
  readonly #exchanges: VocabularyExchanges;
  /** When the input of F (even) and of B or I (odd) of (stage, microbatch) arrives; NaN: not yet. */
  readonly #arrival: Float64Array;
  /** When F (even), and B or I (odd), of (stage, microbatch) ended; NaN: not yet. */
  readonly #done: Float64Array;
  /** Of each microbatch: when S may start, and when T may. */
  readonly #s0: Float64Array;
  readonly #t0: Float64Array;
  /** Ranks that have run S and T of each microbatch, and when the last did. */
  readonly #ran: Int32Array;
  readonly #latest: Float64Array;

  constructor(s: Schedule, barriers: 1 | 2, transfers: Transfers, exchanges: VocabularyExchanges) {
    const { stages, microbatches: M } = s;
    this.#s = s;
    this.#barriers = barriers;
    this.#transfers = transfers;
    this.#exchanges = exchanges;
    this.#arrival = new Float64Array(2 * stages * M).fill(NaN);
    for (let m = 0; m < M; m++) this.#arrival[2 * m] = 0;
    this.#done = new Float64Array(2 * stages * M).fill(NaN);
    this.#s0 = new Float64Array(M).fill(NaN);
    this.#t0 = new Float64Array(M).fill(NaN);
    this.#ran = new Int32Array(2 * M);
    this.#latest = new Float64Array(2 * M);
  }

  /** When an action may start; NaN where what it needs has not run. */
  action(i: number): Seconds {
    const key = 2 * (this.#s.stage[i]! * this.#s.microbatches + this.#s.microbatch[i]!);
    switch (this.#s.kind[i]!) {
      case kindCode.F:
        return this.#arrival[key]!;
      case kindCode.W:
        return this.#done[key + 1]!;
      default:
        // NaN if either is.
        return Math.max(this.#arrival[key + 1]!, this.#done[key]!);
    }
  }

  /** When S of a microbatch may start, and T; NaN: not known. */
  pass(kind: "S" | "T", microbatch: number): Seconds {
    return (kind === "S" ? this.#s0 : this.#t0)[microbatch]!;
  }

  /** Ends an action; true where every rank may run S now. */
  endAction(i: number, time: Seconds): boolean {
    const { stages, microbatches: M } = this.#s;
    const [stage, m, kind] = [this.#s.stage[i]!, this.#s.microbatch[i]!, this.#s.kind[i]!];
    const key = 2 * (stage * M + m);
    if (kind === kindCode.W) return false;
    if (kind === kindCode.F) {
      this.#done[key] = time;
      if (stage === stages - 1) {
        this.#s0[m] = time + this.#exchanges.output;
        return true;
      }
      this.#arrival[key + 2 * M] = time + this.#transfers.up[stage]!;
      return false;
    }
    this.#done[key + 1] = time;
    if (stage > 0) this.#arrival[key - 2 * M + 1] = time + this.#transfers.down[stage]!;
    return false;
  }

  /** Ends a pass on one rank; true where it was the last, and others may go on. */
  endPass(kind: "S" | "T", m: number, time: Seconds): boolean {
    const place = 2 * m + (kind === "S" ? 0 : 1);
    const latest = Math.max(this.#latest[place]!, time);
    this.#latest[place] = latest;
    if (++this.#ran[place]! < this.#s.ranks) return false;
    const { statistics, gradient } = this.#exchanges;
    const all = latest + (kind === "S" ? statistics : gradient);
    if (kind === "S") this.#t0[m] = all;
    const opens = this.#barriers === 1 ? kind === "S" : kind === "T";
    if (opens) {
      const last = 2 * ((this.#s.stages - 1) * this.#s.microbatches + m) + 1;
      this.#arrival[last] = this.#barriers === 1 ? all + gradient : all;
    }
    return true;
  }
}
