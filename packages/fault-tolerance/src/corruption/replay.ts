/**
 * Redundant replay: a step done again, on the same device or another, with the same input and
 * deterministic kernels, must give the same bits. Finds every corruption that shows, at twice the cost.
 */
import { TriremeError } from "@trireme/core";
import { type FloatArray, wordsOf } from "./bits.ts";

export interface ReplayDifference {
  /** Values whose bits differ. */
  readonly count: number;
  /** The first of them by index; −1 where there is none. */
  readonly first: number;
}

/**
 * Compares two results of one computation bit by bit.
 * @throws TriremeError "REPLAY" when their sizes or formats differ.
 */
export function replayDifference(one: FloatArray, other: FloatArray): ReplayDifference {
  const [x, y] = [wordsOf(one), wordsOf(other)];
  if (x.length !== y.length || x.BYTES_PER_ELEMENT !== y.BYTES_PER_ELEMENT) {
    throw new TriremeError(
      "REPLAY",
      `${x.length} values of ${x.BYTES_PER_ELEMENT} bytes against ${y.length} of ${y.BYTES_PER_ELEMENT}: replay the same tensor`,
    );
  }
  let [count, first] = [0, -1];
  for (let i = 0; i < x.length; i++) {
    if (x[i] === y[i]) continue;
    if (count++ === 0) first = i;
  }
  return { count, first };
}
