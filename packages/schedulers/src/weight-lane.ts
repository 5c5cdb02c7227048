/**
 * The communication of whole weights on one rank, beside its computation: UNSHARD and REDUCE_GRAD run
 * one at a time, each as soon as the lane is free, the most urgent of those that wait first (Jiang et
 * al., MegaScale, NSDI 2024, §3.2: collectives of model chunks by priority).
 */
import type { Seconds } from "@trireme/core";

export class WeightLane {
  readonly #starts: Float64Array;
  readonly #ends: Float64Array;
  readonly #priorities: Int32Array;
  readonly #durations: (action: number) => Seconds;
  /** Actions that wait, and when each was posted. */
  readonly #waiting: { readonly action: number; readonly posted: Seconds }[] = [];
  #free: Seconds = 0;

  /** Writes into the columns of a replay; `priorities` as `weightPriorities` gives them. */
  constructor(
    starts: Float64Array,
    ends: Float64Array,
    priorities: Int32Array,
    durations: (action: number) => Seconds,
  ) {
    this.#starts = starts;
    this.#ends = ends;
    this.#priorities = priorities;
    this.#durations = durations;
  }

  /** Enters an action; times of posts never decrease. */
  post(action: number, now: Seconds): void {
    while (this.#waiting.length > 0 && this.#nextStart() < now) this.#runNext();
    this.#waiting.push({ action, posted: now });
  }

  /** When an action that was posted ends. */
  finish(action: number): Seconds {
    while (this.#waiting.some((w) => w.action === action)) this.#runNext();
    return this.#ends[action]!;
  }

  /** Runs all that wait. */
  flush(): void {
    while (this.#waiting.length > 0) this.#runNext();
  }

  #nextStart(): Seconds {
    return this.#waiting.reduce((t, w) => Math.min(t, Math.max(this.#free, w.posted)), Infinity);
  }

  #runNext(): void {
    const start = this.#nextStart();
    let best = -1;
    for (const [k, w] of this.#waiting.entries()) {
      if (w.posted > start) continue;
      const before = best < 0 ? Infinity : this.#priorities[this.#waiting[best]!.action]!;
      if (this.#priorities[w.action]! < before) best = k;
    }
    const [chosen] = this.#waiting.splice(best, 1);
    if (chosen === undefined) return;
    this.#starts[chosen.action] = start;
    this.#free = start + this.#durations(chosen.action);
    this.#ends[chosen.action] = this.#free;
  }
}
