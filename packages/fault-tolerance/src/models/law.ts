/**
 * When things fail: laws of the time between failures. Every law is read through its cumulative
 * hazard H(t), so that a failure is H⁻¹ of a unit exponential: one draw a failure, whatever the law.
 */
import { TriremeError, type Rng, type Seconds } from "@trireme/core";

export type FailureLaw =
  | { readonly kind: "exponential"; readonly mean: Seconds }
  /** Shape below 1 fails young, above 1 wears out; shape 1 is exponential. */
  | { readonly kind: "weibull"; readonly shape: number; readonly scale: Seconds }
  /** Infant mortality, constant rate and wear-out at once: the first of its laws to strike. */
  | { readonly kind: "bathtub"; readonly laws: readonly FailureLaw[] }
  /** Measured times between failures, ascending, drawn with replacement. */
  | { readonly kind: "trace"; readonly times: readonly Seconds[] };

/**
 * Refuses a law with a parameter that is not above 0, an empty one, and a trace that is unsorted or
 * of zeros only.
 * @throws TriremeError "LAW"
 */
export function checkLaw(law: FailureLaw): void {
  switch (law.kind) {
    case "exponential":
      positive("mean", law.mean);
      break;
    case "weibull":
      positive("shape", law.shape);
      positive("scale", law.scale);
      break;
    case "bathtub":
      if (law.laws.length === 0) throw new TriremeError("LAW", "a bathtub needs at least 1 law");
      for (const each of law.laws) checkLaw(each);
      break;
    case "trace":
      if (law.times.length === 0) {
        throw new TriremeError("LAW", "a trace law needs at least 1 time");
      }
      for (const [i, time] of law.times.entries()) {
        if (!(time >= (law.times[i - 1] ?? 0)) || time === Infinity) {
          throw new TriremeError(
            "LAW",
            `time ${i} of a trace law is ${time} s after ${law.times[i - 1] ?? 0} s: sort the times`,
          );
        }
      }
      if (law.times.at(-1) === 0) {
        throw new TriremeError(
          "LAW",
          `all ${law.times.length} times of a trace law are 0 s: time would stand still; use one above 0`,
        );
      }
  }
}

/**
 * Time to the next failure under the law, from one that has just been renewed.
 * @throws TriremeError "LAW" on a law that `checkLaw` refuses.
 */
export function drawFailure(law: FailureLaw, rng: Rng): Seconds {
  checkLaw(law);
  return inverseHazard(law, drawHazard(rng));
}

/** A unit exponential: the hazard that has gathered when a failure strikes. Above 0 always. */
export function drawHazard(rng: Rng): number {
  // Half a step of the 2^-32 grid, so that no failure comes at its renewal.
  return -Math.log1p(-(rng.float() + 2 ** -33));
}

/** Hazard gathered by age t: −ln of the chance to have lived so long. */
export function cumulativeHazard(law: FailureLaw, age: Seconds): number {
  switch (law.kind) {
    case "exponential":
      return age / law.mean;
    case "weibull":
      return (age / law.scale) ** law.shape;
    case "bathtub":
      return law.laws.reduce((sum, each) => sum + cumulativeHazard(each, age), 0);
    case "trace":
      return -Math.log1p(-countTo(law.times, age) / law.times.length);
  }
}

/** The age at which the gathered hazard reaches `hazard`. The law is taken as checked. */
export function inverseHazard(law: FailureLaw, hazard: number): Seconds {
  switch (law.kind) {
    case "exponential":
      return law.mean * hazard;
    case "weibull":
      return law.scale * hazard ** (1 / law.shape);
    case "bathtub":
      return inverseSum(law.laws, hazard);
    case "trace": {
      const { times } = law;
      const at = Math.floor(-Math.expm1(-hazard) * times.length);
      return times[Math.min(at, times.length - 1)]!;
    }
  }
}

/**
 * By bisection between bounds that hold for any laws: at the least of the laws' own inverses the sum
 * is at least the hazard, and at the least of their inverses of an equal share it is at most that.
 */
function inverseSum(laws: readonly FailureLaw[], hazard: number): Seconds {
  let [low, high] = [Infinity, Infinity];
  for (const law of laws) {
    low = Math.min(low, inverseHazard(law, hazard / laws.length));
    high = Math.min(high, inverseHazard(law, hazard));
  }
  // 2^-40 of the time is far below what the 32 random bits of the draw resolve.
  while (high - low > high * 2 ** -40) {
    const middle = (low + high) / 2;
    let sum = 0;
    for (const law of laws) sum += cumulativeHazard(law, middle);
    if (sum < hazard) low = middle;
    else high = middle;
  }
  return high;
}

/** How many of the ascending times are at most `age`. */
function countTo(times: readonly Seconds[], age: Seconds): number {
  let [from, to] = [0, times.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (times[middle]! <= age) from = middle + 1;
    else to = middle;
  }
  return from;
}

function positive(name: string, value: number): void {
  if (!(value > 0 && value < Infinity)) {
    throw new TriremeError("LAW", `${name} = ${value} of a failure law must be above 0 and finite`);
  }
}
