/** Suspicion from silence: a fixed deadline, or phi accrual (Hayashibara et al., SRDS 2004). */
import { TriremeError, type Seconds } from "@trireme/core";

/** Whether a host silent since `last` is past its deadline; exactly at the deadline it is. */
export function isSilent(last: Seconds, now: Seconds, deadline: Seconds): boolean {
  return now - last >= deadline;
}

/**
 * Phi: −log₁₀ of the chance that a heartbeat still comes, with intervals taken as normal. 8 is a
 * usual threshold. A heartbeat from the future (clock skew) gives 0 suspicion.
 */
export function phi(intervals: readonly Seconds[], last: Seconds, now: Seconds): number {
  if (intervals.length === 0) {
    throw new TriremeError("PHI", "phi needs at least 1 observed interval; wait for 2 heartbeats");
  }
  const mean = intervals.reduce((a, b) => a + b, 0) / intervals.length;
  const variance = intervals.reduce((sum, x) => sum + (x - mean) ** 2, 0) / intervals.length;
  // A tenth of the mean at least: perfectly even heartbeats must not make phi a step.
  const deviation = Math.max(Math.sqrt(variance), mean / 10, Number.MIN_VALUE);
  const y = Math.max(-38, (now - last - mean) / deviation);
  // Logistic approximation of the normal tail (Bowling et al. 2009), kept in logarithms.
  const exponent = y * (1.5976 + 0.070566 * y * y);
  return exponent > 30 ? exponent / Math.LN10 : Math.log1p(Math.exp(exponent)) / Math.LN10;
}

/**
 * A deadline learnt from what was seen: the longest silence or section so far times a safety factor
 * (NVIDIA Resiliency Extension: 5).
 * @throws TriremeError "HEARTBEAT" without observations, or with a factor that is not above 1.
 */
export function learnedDeadline(observed: readonly Seconds[], factor = 5): Seconds {
  const longest = observed.reduce((most, each) => Math.max(most, each), 0);
  if (!(longest > 0 && factor > 1)) {
    throw new TriremeError(
      "HEARTBEAT",
      `longest of ${observed.length} times is ${longest} s, factor ${factor}: use a time above 0 and a factor above 1`,
    );
  }
  return longest * factor;
}
