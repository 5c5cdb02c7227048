/** How often what is timed is run, and what is made of the times. */
import type { Seconds } from "@trireme/core";

/** Times are medians of at least this many executions, and at most that many. */
const leastRuns = 3;
const mostRuns = 200;

/**
 * Runs until `budget` seconds are over on the clock, and whether each counts: the first, which pays for
 * memory and compilation, does not.
 */
export function* timedRuns(budget: Seconds, now: () => Seconds): Generator<boolean> {
  const end = now() + budget;
  yield false;
  for (let run = 0; run < mostRuns && (run < leastRuns || now() < end); run++) yield true;
}
