/** When things fail: laws of the time between failures, drawn by inversion from a given stream. */
import { TriremeError, type Rng, type Seconds } from "@trireme/core";

import type { Cause } from "./causes.ts";

export type FailureLaw =
  | { readonly kind: "exponential"; readonly mean: Seconds }
  | { readonly kind: "weibull"; readonly shape: number; readonly scale: Seconds }
  /** Infant mortality, constant rate and wear-out at once: the first of the three to strike. */
  | { readonly kind: "bathtub"; readonly laws: readonly FailureLaw[] }
  /** Measured times between failures, drawn with replacement. */
  | { readonly kind: "trace"; readonly times: readonly Seconds[] };

/** Time to the next failure under the law, from one that has just been renewed. */
export function drawFailure(law: FailureLaw, rng: Rng): Seconds {
  switch (law.kind) {
    case "exponential":
      return positive("mean", law.mean) * exponential(rng);
    case "weibull":
      return positive("scale", law.scale) * exponential(rng) ** (1 / positive("shape", law.shape));
    case "bathtub":
      return law.laws.reduce((least, each) => Math.min(least, drawFailure(each, rng)), Infinity);
    case "trace":
      if (law.times.length === 0)
        throw new TriremeError("LAW", "a trace law needs at least 1 time");
      return law.times[rng.integer(law.times.length)]!;
  }
}

/** Draws a cause with probability in proportion to its count. */
export function drawCause(causes: readonly Cause[], rng: Rng): Cause {
  const total = causes.reduce((sum, each) => sum + each.count, 0);
  if (!(total > 0))
    throw new TriremeError("CAUSES", `counts sum to ${total}; at least 1 is needed`);
  let left = rng.float() * total;
  for (const each of causes) {
    left -= each.count;
    if (left < 0) return each;
  }
  return causes.at(-1)!;
}

function exponential(rng: Rng): number {
  return -Math.log1p(-rng.float());
}

function positive(name: string, value: number): number {
  if (value > 0) return value;
  throw new TriremeError("LAW", `${name} = ${value} of a failure law must be above 0`);
}
