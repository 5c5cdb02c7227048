/** Weights of a mixture: from sizes by a temperature, and over the steps of a run by a curriculum. */
import { TriremeError } from "@trireme/core";

/**
 * Shares in proportion to size^(1/temperature): 1 keeps the natural shares, above 1 lifts small
 * sources, Infinity makes all equal (Conneau and Lample, Cross-lingual language model pretraining,
 * 2019, §3.1, with α = 1/temperature). Empty sources get nothing. Adds up to 1.
 */
export function temperedWeights(sizes: readonly number[], temperature: number): number[] {
  if (!(temperature > 0))
    throw new TriremeError(
      "MIXTURE",
      `temperature ${temperature} is not positive; 1 keeps natural shares`,
    );
  const largest = Math.max(...sizes);
  if (!(largest > 0 && largest < Infinity) || sizes.some((size) => !(size >= 0))) {
    throw new TriremeError(
      "MIXTURE",
      `sizes [${sizes.join(", ")}]: each must be at least 0, and one positive`,
    );
  }
  // Relative to the largest, so that no power overflows.
  const raised = sizes.map((size) => (size === 0 ? 0 : (size / largest) ** (1 / temperature)));
  const sum = raised.reduce((total, part) => total + part, 0);
  return raised.map((part) => part / sum);
}

/** The weights at a step. */
export interface MixturePoint {
  readonly step: number;
  readonly weights: readonly number[];
}

/**
 * Weights at a step of a curriculum: linear between points, those of the first before it and of the
 * last after it. Two points at one step are a jump, which takes effect at that step. The weights of
 * each point are normalised first, so that they may be in any unit.
 */
export function weightsAt(points: readonly MixturePoint[], step: number): readonly number[] {
  check(points);
  const after = points.findIndex((point) => point.step > step);
  const next = points[after];
  const before = points[after === -1 ? points.length - 1 : after - 1];
  if (before === undefined) return sharesOf(points[0]!);
  if (next === undefined) return sharesOf(before);
  const part = (step - before.step) / (next.step - before.step);
  const [from, to] = [sharesOf(before), sharesOf(next)];
  return from.map((weight, d) => weight + part * (to[d]! - weight));
}

function sharesOf({ weights }: MixturePoint): readonly number[] {
  const sum = weights.reduce((total, weight) => total + weight, 0);
  return weights.map((weight) => weight / sum);
}

function check(points: readonly MixturePoint[]): void {
  const [first] = points;
  if (first === undefined)
    throw new TriremeError("MIXTURE", "a curriculum without points; give at least one");
  points.forEach(({ step, weights }, i) => {
    const sum = weights.reduce((total, weight) => total + weight, 0);
    if (weights.some((weight) => !(weight >= 0)) || !(sum > 0 && sum < Infinity)) {
      throw new TriremeError(
        "MIXTURE",
        `weights [${weights.join(", ")}] at step ${step}: each must be at least 0, and their sum positive`,
      );
    }
    if (weights.length !== first.weights.length) {
      throw new TriremeError(
        "MIXTURE",
        `${weights.length} weights at step ${step}, but ${first.weights.length} at step ${first.step}`,
      );
    }
    if (i > 0 && !(step >= points[i - 1]!.step)) {
      throw new TriremeError(
        "MIXTURE",
        `step ${step} after step ${points[i - 1]!.step}: points go in order of step`,
      );
    }
  });
}
