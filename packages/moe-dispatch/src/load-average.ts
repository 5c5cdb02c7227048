/** Loads over time: what a placement should be made for is where load is going to be, not one batch. */
import { TriremeError } from "@trireme/core";
import { requireInteger, requireLength, requireNumber } from "./shape.ts";

/** Exponential moving average of loads, without the pull towards 0 of its first steps. */
export class LoadAverage {
  readonly #sums: Float64Array;
  readonly #decay: number;
  #weight = 0;

  /**
   * @param length Loads in a step, such as layers x experts.
   * @param decay Weight of the past in [0, 1); 0 keeps the last step alone.
   */
  constructor(length: number, decay: number) {
    requireInteger("length", length, 1);
    if (!(decay >= 0 && decay < 1)) {
      throw new TriremeError("MOE_RANGE", `decay is ${decay}; it must be in [0, 1), such as 0.9`);
    }
    this.#sums = new Float64Array(length);
    this.#decay = decay;
  }

  /** Takes in the loads of one step, finite and not negative. */
  update(loads: ArrayLike<number>): void {
    requireLength("loads", loads, this.#sums.length, `an average of ${this.#sums.length} loads`);
    // One that is none would never leave the average again.
    for (let i = 0; i < loads.length; i++) requireNumber(`load ${i}`, loads[i]!, 0);
    for (let i = 0; i < this.#sums.length; i++) {
      this.#sums[i] = this.#decay * this.#sums[i]! + (1 - this.#decay) * loads[i]!;
    }
    this.#weight = this.#decay * this.#weight + (1 - this.#decay);
  }

  /** The average; all 0 before the first step. */
  get loads(): Float64Array {
    const weight = this.#weight === 0 ? 1 : this.#weight;
    return this.#sums.map((sum) => sum / weight);
  }
}
