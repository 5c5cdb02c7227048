/** What each rank's next span waits for: the spans that a recorder which wants to know is told of. */
import type { Seconds } from "@trireme/core";
import type { Recorder } from "./recorder.ts";

export class Causes {
  readonly #recorder: Recorder;
  /** Spans that the next computation of a rank waited for, by rank. */
  readonly #inputs: number[][];
  /** The span that ended last of those a rank computed or stood still for, -1: none; and its end. */
  readonly #last: Int32Array;
  readonly #lastEnd: Float64Array;

  constructor(recorder: Recorder, ranks: number) {
    this.#recorder = recorder;
    this.#inputs = Array.from({ length: recorder.links ? ranks : 0 }, () => []);
    this.#last = new Int32Array(ranks).fill(-1);
    this.#lastEnd = new Float64Array(ranks);
  }

  /** The span that let a rank come as far as it is; -1: none. */
  last(rank: number): number {
    return this.#last[rank]!;
  }

  /** A rank has computed `span`. */
  computed(rank: number, span: number, end: Seconds): void {
    const inputs = this.#inputs[rank]!;
    for (const input of inputs) this.#recorder.link(span, input);
    inputs.length = 0;
    this.#last[rank] = span;
    this.#lastEnd[rank] = end;
  }

  /** A rank goes on after what it stood still for. */
  stoodFor(rank: number, span: number, end: Seconds): void {
    this.#inputs[rank]!.push(span);
    if (end < this.#lastEnd[rank]!) return;
    this.#last[rank] = span;
    this.#lastEnd[rank] = end;
  }
}
