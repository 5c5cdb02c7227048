/** Rates over time: what a rank computes and moves per second, from the spans that are under way. */
import type { Seconds } from "@trireme/core";
import type { Timeline } from "../timeline.ts";

/** A rate from one time on. */
export interface RateStep {
  readonly time: Seconds;
  readonly rate: number;
}

/**
 * The sum over the spans of a rank of amount / duration while each lasts, as steps in order of time;
 * spans without amount or duration do not count. Undefined when none does.
 */
export function rateSteps(
  t: Timeline,
  spans: Iterable<number>,
  amount: Float64Array,
): readonly RateStep[] | undefined {
  const changes: { time: Seconds; rate: number; open: 1 | -1 }[] = [];
  for (const i of spans) {
    const duration = t.end[i]! - t.start[i]!;
    if (!(amount[i]! > 0 && duration > 0)) continue;
    const rate = amount[i]! / duration;
    changes.push({ time: t.start[i]!, rate, open: 1 }, { time: t.end[i]!, rate: -rate, open: -1 });
  }
  if (changes.length === 0) return undefined;
  changes.sort((a, b) => a.time - b.time);
  const steps: RateStep[] = [];
  let [rate, open] = [0, 0];
  changes.forEach((change, k) => {
    rate += change.rate;
    open += change.open;
    // What rounding leaves when nothing is under way is 0.
    if (open === 0) rate = 0;
    if (changes[k + 1]?.time !== change.time) steps.push({ time: change.time, rate });
  });
  return steps;
}
