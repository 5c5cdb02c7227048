/** What multiplies a computation: its rank's slowness, and chance. */
import { type Instructions, ownPlace } from "./instructions.ts";
import { type Jitter, jitterFactor } from "./jitter.ts";
import type { PlayOptions } from "./play-options.ts";

export class Pace {
  readonly #code: Instructions;
  readonly #speed: ArrayLike<number> | undefined;
  readonly #jitter: Jitter | undefined;

  constructor(code: Instructions, { speed, jitter }: PlayOptions) {
    this.#code = code;
    this.#speed = speed;
    this.#jitter = jitter;
  }

  /** The factor of the computation at place `i` of a rank's list. */
  factor(rank: number, i: number): number {
    const factor = this.#speed === undefined ? 1 : 1 / this.#speed[rank]!;
    if (this.#jitter === undefined) return factor;
    return factor * jitterFactor(this.#jitter, rank, ownPlace(this.#code, rank, i));
  }
}
