/**
 * What the next real of a column probably is. Writer and reader keep the same tables, which start
 * empty in every block: a span starts where the last one on its rank and lane ended, takes as long as
 * the last one of its kind and stage, and moves and computes as much. Spans that share an entry by
 * accident only cost bytes.
 */
import type { Seconds } from "@trireme/core";

const entries = 4096;

export class Predictor {
  readonly #ends = new Float64Array(entries);
  readonly #durations = new Float64Array(entries);
  readonly #bytes = new Float64Array(entries);
  readonly #flops = new Float64Array(entries);

  start(rank: number, lane: number): Seconds {
    return this.#ends[place(rank, lane)]!;
  }

  end(kind: number, stage: number, start: Seconds): Seconds {
    return start + this.#durations[place(stage, kind)]!;
  }

  /** Learns from the times of a span. */
  sawTimes(
    rank: number,
    lane: number,
    kind: number,
    stage: number,
    start: Seconds,
    end: Seconds,
  ): void {
    this.#ends[place(rank, lane)] = end;
    this.#durations[place(stage, kind)] = end - start;
  }

  bytes(kind: number, stage: number): number {
    return this.#bytes[place(stage, kind)]!;
  }

  flops(kind: number, stage: number): number {
    return this.#flops[place(stage, kind)]!;
  }

  /** Learns from the sizes of a span. */
  sawBytes(kind: number, stage: number, bytes: number): void {
    this.#bytes[place(stage, kind)] = bytes;
  }

  sawFlops(kind: number, stage: number, flops: number): void {
    this.#flops[place(stage, kind)] = flops;
  }
}

function place(a: number, b: number): number {
  return (a * 31 + b) & (entries - 1);
}
