/** Straggler scores of NVIDIA's Resiliency Extension: 1 is as fast as the reference, lower is slower. */
import { TriremeError, type Seconds } from "@trireme/core";

/** Times of one kernel on every rank. Communication kernels are left out by the caller. */
export interface KernelTimes {
  readonly name: string;
  /** Median time on each rank. */
  readonly median: readonly Seconds[];
  /** Mean time on each rank; the medians by default. */
  readonly average?: readonly Seconds[];
  /** Executions on each rank; 1 by default. */
  readonly count?: readonly number[];
}

/** Below this score a rank is a straggler, by NVIDIA's default. */
export const stragglerThreshold = 0.75;

/**
 * Relative score of each rank: reference median / own median, weighted over kernels by
 * count × average of the rank. The reference is the fastest rank's median, so one rank scores 1.
 */
export function relativeScores(kernels: readonly KernelTimes[]): Float64Array {
  const ranks = kernels[0]?.median.length ?? 0;
  const scores = new Float64Array(ranks);
  const weights = new Float64Array(ranks);
  for (const kernel of kernels) {
    const { name, median, average = median, count } = kernel;
    if (median.length !== ranks || average.length !== ranks || (count ?? median).length !== ranks) {
      throw new TriremeError(
        "STRAGGLER",
        `kernel ${name}: times of ${median.length} ranks, not ${ranks}`,
      );
    }
    let reference = Infinity;
    for (const time of median) {
      if (!(time > 0))
        throw new TriremeError("STRAGGLER", `kernel ${name}: median ${time} s is not above 0`);
      reference = Math.min(reference, time);
    }
    for (let rank = 0; rank < ranks; rank++) {
      const weight = (count?.[rank] ?? 1) * average[rank]!;
      scores[rank]! += (weight * reference) / median[rank]!;
      weights[rank]! += weight;
    }
  }
  for (let rank = 0; rank < ranks; rank++) scores[rank]! /= weights[rank]!;
  return scores;
}

/** Individual score: the best median this rank ever had against its median now. */
export function individualScore(bestEver: Seconds, own: Seconds): number {
  if (!(bestEver > 0 && own > 0)) {
    throw new TriremeError("STRAGGLER", `best ${bestEver} s, now ${own} s: both must be above 0`);
  }
  return Math.min(bestEver, own) / own;
}

/** Ranks whose score is below the threshold, slowest first. */
export function stragglers(
  scores: ArrayLike<number>,
  threshold: number = stragglerThreshold,
): number[] {
  return Array.from(scores, (_, rank) => rank)
    .filter((rank) => scores[rank]! < threshold)
    .toSorted((a, b) => scores[a]! - scores[b]! || a - b);
}
