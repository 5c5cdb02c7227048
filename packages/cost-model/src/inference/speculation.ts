/**
 * Speculative decoding: a step verifies several guessed tokens at once and keeps those that the model would have
 * chosen, and one more.
 */
import { TriremeError } from "@trireme/core";
import type { Model } from "@trireme/workload";

/** Where guesses come from, and how good they are. */
export interface Speculation {
  /** Guessed tokens that a step verifies: a line of them, or the nodes of a tree. */
  readonly candidates: number;
  /** Guesses in a line: how far ahead; as many as `candidates` when left out. */
  readonly depth?: number;
  /** Chance that a guess is kept when those before it were; or `accepted` tokens in a step, measured. */
  readonly acceptance?: number;
  /** Tokens that a step yields on average, its own included. */
  readonly accepted?: number;
  /**
   * A small model that guesses token by token on one of the tp devices; without one, heads on the model itself do, one
   * for each token ahead (Medusa, arXiv 2401.10774).
   */
  readonly draft?: Model;
}

/**
 * Tokens that a step yields: what was measured, or (1 − a^(depth + 1)) / (1 − a) (Leviathan et al., arXiv 2211.17192,
 * Eq. 1).
 * Throws TriremeError "INFERENCE" for numbers that make no sense.
 */
export function acceptedTokens(s: Speculation): number {
  const { candidates, depth = candidates, acceptance, accepted } = s;
  for (const [name, n] of Object.entries({ candidates, depth })) {
    if (!Number.isInteger(n) || n < 1) fail(`${name} ${n} must be an integer from 1 up`);
  }
  if (depth > candidates) fail(`depth ${depth} is more than the ${candidates} candidates`);
  if (accepted !== undefined) {
    if (acceptance !== undefined) fail("give accepted or acceptance, not both");
    if (!(accepted >= 1 && accepted <= depth + 1)) {
      fail(`accepted ${accepted} must lie between 1 and depth + 1 = ${depth + 1}`);
    }
    return accepted;
  }
  if (acceptance === undefined)
    fail("give acceptance (of one guess) or accepted (tokens of a step)");
  if (!(acceptance >= 0 && acceptance <= 1)) fail(`acceptance ${acceptance} must be in [0, 1]`);
  return acceptance === 1 ? depth + 1 : (1 - acceptance ** (depth + 1)) / (1 - acceptance);
}

function fail(message: string): never {
  throw new TriremeError("INFERENCE", message);
}
