/** Draws what has failed from a table of published counts. */
import { TriremeError, type Rng } from "@trireme/core";
import type { Cause } from "./causes.ts";

/**
 * Draws a cause with probability in proportion to its count.
 * @throws TriremeError "CAUSES" when the counts do not sum to something above 0.
 */
export function drawCause(causes: readonly Cause[], rng: Rng): Cause {
  const total = causes.reduce((sum, each) => sum + each.count, 0);
  if (!(total > 0)) {
    throw new TriremeError("CAUSES", `counts sum to ${total}; at least 1 is needed`);
  }
  let left = rng.float() * total;
  for (const each of causes) {
    left -= each.count;
    if (left < 0) return each;
  }
  return causes.at(-1)!;
}
