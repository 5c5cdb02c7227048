/**
 * Failures of n equal units in order of time, at a cost that grows with the failures and not with
 * the units. A memoryless population is one Poisson stream. For every other law the units that have
 * never failed are drawn as order statistics: their gathered hazards are unit exponentials, whose
 * i-th smallest exceeds the one before by an exponential of mean 1/(n − i) (Rényi 1953); which unit it
 * is comes from a sparse shuffle. Units that have failed and were renewed wait in a heap.
 */
import { Heap, type Rng, type Seconds } from "@trireme/core";
import { type FailureLaw, cumulativeHazard, drawHazard, inverseHazard } from "./law.ts";

interface Strike {
  readonly time: Seconds;
  readonly unit: number;
}

export class Population {
  readonly #law: FailureLaw;
  readonly #units: number;
  readonly #rng: Rng;
  /** Every strike to come that is known: renewed units, and the first of those never failed. */
  readonly #strikes = new Heap<Strike>((a, b) =>
    a.time === b.time ? a.unit < b.unit : a.time < b.time,
  );
  /** Slots of the shuffle that do not hold their own number. */
  readonly #moved = new Map<number, number>();
  #fresh: number;
  #first: Strike | undefined;
  /** Gathered by the units that never failed when the last of them drawn does. */
  #hazard: number;
  readonly #age: Seconds;

  /** @param law A checked law of one unit. @param age Age of all units at time 0. */
  constructor(units: number, law: FailureLaw, rng: Rng, age: Seconds = 0) {
    this.#units = units;
    this.#law = law;
    this.#rng = rng;
    this.#fresh = units;
    this.#age = age;
    this.#hazard = cumulativeHazard(law, age);
    if (units > 0) this.#draw(0);
  }

  /** Time of the next failure; Infinity when there are no units. */
  get next(): Seconds {
    return this.#strikes.peek()?.time ?? Infinity;
  }

  /** Takes the next failure and returns its unit, which is new again from then on. */
  take(): number {
    const strike = this.#strikes.pop()!;
    const { time, unit } = strike;
    if (this.#law.kind === "exponential") {
      this.#draw(time);
    } else {
      const age = inverseHazard(this.#law, drawHazard(this.#rng));
      this.#strikes.push({ time: time + age, unit });
      if (strike === this.#first) this.#draw(0);
    }
    return unit;
  }

  #draw(now: Seconds): void {
    if (this.#law.kind === "exponential") {
      const time = now + (this.#law.mean / this.#units) * drawHazard(this.#rng);
      this.#strikes.push({ time, unit: this.#rng.integer(this.#units) });
    } else if (this.#fresh > 0) {
      this.#hazard += drawHazard(this.#rng) / this.#fresh;
      // An inverse that is found by bisection may fall short of the age by its last digits.
      const time = Math.max(0, inverseHazard(this.#law, this.#hazard) - this.#age);
      this.#first = { time, unit: this.#shuffled() };
      this.#strikes.push(this.#first);
    }
  }

  /** One of the units not drawn before, each as likely (Fisher–Yates, storing only what moved). */
  #shuffled(): number {
    const slot = this.#rng.integer(this.#fresh);
    const last = --this.#fresh;
    const unit = this.#moved.get(slot) ?? slot;
    this.#moved.set(slot, this.#moved.get(last) ?? last);
    this.#moved.delete(last);
    return unit;
  }
}
