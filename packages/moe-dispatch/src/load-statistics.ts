/** How uneven loads are, in the measures in use. */
import { TriremeError } from "@trireme/core";

/** Measures of loads; of no load at all: imbalance 1, entropy 1, the others 0. */
export interface LoadStatistics {
  readonly total: number;
  readonly mean: number;
  readonly most: number;
  readonly least: number;
  /** Most over mean, at least 1: how much longer the busiest takes than a balanced one. */
  readonly imbalance: number;
  /** Standard deviation over mean. */
  readonly variation: number;
  /** 0 for equal loads, (n − 1)/n for all load on one. */
  readonly gini: number;
  /** Entropy of the shares over its greatest, log n: 1 for equal loads, 0 for all load on one. */
  readonly entropy: number;
  /** How many have no load. */
  readonly empty: number;
}

/** Statistics of `loads` of experts or ranks; not negative, at least one. */
export function loadStatistics(loads: ArrayLike<number>): LoadStatistics {
  const n = loads.length;
  if (n === 0) throw new TriremeError("MOE_RANGE", "0 loads; statistics need at least 1");
  const sorted = Float64Array.from(loads).sort();
  if (!(sorted[0]! >= 0 && sorted[n - 1]! < Infinity)) {
    throw new TriremeError(
      "MOE_RANGE",
      `loads lie in ${sorted[0]}..${sorted[n - 1]}; they must be finite and not negative`,
    );
  }
  let total = 0;
  let ranked = 0;
  let empty = 0;
  for (let i = 0; i < n; i++) {
    total += sorted[i]!;
    ranked += (2 * i + 1 - n) * sorted[i]!;
    if (sorted[i] === 0) empty++;
  }
  const mean = total / n;
  let squares = 0;
  let entropy = 0;
  for (const load of sorted) {
    squares += (load - mean) ** 2;
    if (load > 0) entropy -= (load / total) * Math.log(load / total);
  }
  const most = sorted[n - 1]!;
  return {
    total,
    mean,
    most,
    least: sorted[0]!,
    // Rounding of the sums must not leave the bounds: equal loads are 1, 0 and 1.
    imbalance: total === 0 ? 1 : Math.max(1, most / mean),
    variation: total === 0 ? 0 : Math.sqrt(squares / n) / mean,
    gini: total === 0 ? 0 : Math.max(0, ranked / (n * total)),
    entropy: total === 0 || n === 1 ? 1 : Math.min(1, Math.max(0, entropy / Math.log(n))),
    empty,
  };
}
