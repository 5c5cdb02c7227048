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
 * A rank that ran none of the kernels scores 1: nothing is known against it.
 * @throws TriremeError "STRAGGLER" on lists of other lengths, times not above 0 or counts below 0.
 */
export function relativeScores(kernels: readonly KernelTimes[]): Float64Array {
  const ranks = kernels[0]?.median.length ?? 0;
  const scores = new Float64Array(ranks);
  const weights = new Float64Array(ranks);
  for (const kernel of kernels) {
    const { name, median, average = median, count } = kernel;
    for (const [what, list] of Object.entries({ median, average, count: count ?? median })) {
      if (list.length === ranks) continue;
      const found = `${what} of ${list.length} ranks, not ${ranks}`;
      throw new TriremeError("STRAGGLER", `kernel ${name}: ${found} as the first kernel has`);
    }
    let reference = Infinity;
    for (let rank = 0; rank < ranks; rank++) {
      check(name, "median", median[rank]!, median[rank]! > 0);
      check(name, "average", average[rank]!, average[rank]! > 0);
      check(name, "count", count?.[rank] ?? 1, (count?.[rank] ?? 1) >= 0);
      reference = Math.min(reference, median[rank]!);
    }
    for (let rank = 0; rank < ranks; rank++) {
      const weight = (count?.[rank] ?? 1) * average[rank]!;
      scores[rank]! += (weight * reference) / median[rank]!;
      weights[rank]! += weight;
    }
  }
  for (let rank = 0; rank < ranks; rank++) {
    scores[rank] = weights[rank]! > 0 ? scores[rank]! / weights[rank]! : 1;
  }
  return scores;
}

function check(kernel: string, what: string, value: number, ok: boolean): void {
  if (ok && value < Infinity) return;
  const rule = what === "count" ? "0 or more" : "above 0 s";
  throw new TriremeError("STRAGGLER", `kernel ${kernel}: ${what} = ${value} must be ${rule}`);
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
