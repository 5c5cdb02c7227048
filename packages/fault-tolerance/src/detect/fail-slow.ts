/**
 * Fail-slow (ByteRobust, section 5.2): a slow host stands out only now and then, so stacks are
 * aggregated again every 10 s for 5 rounds, and the parallel group flagged most often is evicted.
 */
import { TriremeError, type Seconds } from "@trireme/core";
import type { SharedGroup } from "./stack-traces.ts";

/** Time between rounds. */
export const failSlowInterval: Seconds = 10;
export const failSlowRounds = 5;

export interface FailSlowVerdict {
  readonly group: SharedGroup;
  /** Rounds that flagged it. */
  readonly flags: number;
}

/**
 * The group flagged in most of the rounds; undefined while rounds are missing, and where none stands
 * out: two groups flagged as often, or none flagged twice.
 * @param rounds What `sharedGroup` found in each round so far, undefined where nothing stood out.
 * @throws TriremeError "FAIL_SLOW" when `needed` is not a whole number from 1 up.
 */
export function failSlowVerdict(
  rounds: readonly (SharedGroup | undefined)[],
  needed: number = failSlowRounds,
): FailSlowVerdict | undefined {
  if (!Number.isInteger(needed) || needed < 1) {
    throw new TriremeError(
      "FAIL_SLOW",
      `${needed} rounds: use a whole number from 1 up, such as 5`,
    );
  }
  if (rounds.length < needed) return undefined;
  const votes = new Map<string, { group: SharedGroup; flags: number }>();
  for (const group of rounds) {
    if (group === undefined) continue;
    const key = `${group.axes.join("+")}:${group.ranks.join(",")}`;
    const known = votes.get(key);
    if (known) known.flags++;
    else votes.set(key, { group, flags: 1 });
  }
  const [first, second] = [...votes.values()].toSorted((a, b) => b.flags - a.flags);
  if (first === undefined || first.flags === second?.flags) return undefined;
  return first.flags >= Math.min(2, needed) ? first : undefined;
}
