/** Suspicion from what training itself reports: loss and gradient norm, and silent ranks of a hang. */
import { TriremeError } from "@trireme/core";

export type Anomaly = "none" | "not-finite" | "spike";

/** ByteRobust's rule: NaN or infinity, or a value of `factor` (5) times the recent median. */
export function metricAnomaly(recent: readonly number[], value: number, factor = 5): Anomaly {
  if (!Number.isFinite(value)) return "not-finite";
  if (recent.length === 0) return "none";
  const sorted = recent.toSorted((a, b) => a - b);
  const median = sorted[sorted.length >> 1]!;
  return median > 0 && value >= factor * median ? "spike" : "none";
}

/**
 * Values further than k times the scaled median absolute deviation from the median, by index.
 * With a zero deviation any value that differs from the median is one.
 */
export function outliers(values: ArrayLike<number>, k = 5): number[] {
  if (!(k > 0)) throw new TriremeError("OUTLIERS", `k = ${k} must be above 0; 5 is usual`);
  const all = Array.from(values);
  const middle = (xs: readonly number[]): number =>
    xs.toSorted((a, b) => a - b)[xs.length >> 1] ?? 0;
  const median = middle(all);
  const deviation = 1.4826 * middle(all.map((x) => Math.abs(x - median)));
  return all.flatMap((x, i) => (Math.abs(x - median) <= k * deviation ? [] : [i]));
}

/** MegaScale: ranks that time out log their operation; a rank that logs nothing is the culprit. */
export function hangCulprits(ranks: number, logged: Iterable<number>): number[] {
  const seen = new Set(logged);
  return Array.from({ length: ranks }, (_, rank) => rank).filter((rank) => !seen.has(rank));
}
