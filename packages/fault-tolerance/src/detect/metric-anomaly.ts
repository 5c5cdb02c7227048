/** Suspicion from what training itself reports: loss and gradient norm. */
import { TriremeError, median } from "@trireme/core";

export type Anomaly = "none" | "not-finite" | "spike";

/**
 * ByteRobust's rule: NaN or infinity, or a value of `factor` (5) times the recent median. What is not
 * finite of the recent values is left out.
 * @throws TriremeError "ANOMALY" when the factor is not above 0.
 */
export function metricAnomaly(recent: readonly number[], value: number, factor = 5): Anomaly {
  if (!(factor > 0)) {
    throw new TriremeError("ANOMALY", `factor = ${factor} must be above 0; 5 is usual`);
  }
  if (!Number.isFinite(value)) return "not-finite";
  const usual = median(recent.filter((each) => Number.isFinite(each)));
  return usual > 0 && value >= factor * usual ? "spike" : "none";
}
