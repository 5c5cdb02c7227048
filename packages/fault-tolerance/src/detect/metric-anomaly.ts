/** Suspicion from what training itself reports: loss and gradient norm. */

export type Anomaly = "none" | "not-finite" | "spike";

/** ByteRobust's rule: NaN or infinity, or a value of `factor` (5) times the recent median. */
export function metricAnomaly(recent: readonly number[], value: number, factor = 5): Anomaly {
  if (!Number.isFinite(value)) return "not-finite";
  if (recent.length === 0) return "none";
  const sorted = recent.toSorted((a, b) => a - b);
  const median = sorted[sorted.length >> 1]!;
  return median > 0 && value >= factor * median ? "spike" : "none";
}
