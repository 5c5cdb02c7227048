/**
 * How much of a time line sets of intervals cover. The measure of a union needs the sorted starts
 * and the sorted ends only, not which belong together: between two neighbouring times the number
 * of open intervals is (starts so far) - (ends so far).
 */
import type { Seconds } from "@trireme/core";

/** Time covered by computing, by communication, by communication alone, and by anything. */
export interface Coverage {
  readonly compute: Seconds;
  readonly communication: Seconds;
  /** Communication while nothing is computed. */
  readonly exposed: Seconds;
  readonly any: Seconds;
}

/**
 * Sweeps three sets at once: set c (0 compute, 1 communication, 2 other) has its sorted times at
 * `at[first + c]` to `at[first + c + 1]` of `starts` and `ends`.
 */
export function coverage(
  starts: Float64Array,
  ends: Float64Array,
  at: Uint32Array,
  first: number,
): Coverage {
  const stop0 = at[first + 1]!;
  const stop1 = at[first + 2]!;
  const stop2 = at[first + 3]!;
  let [s0, s1, s2] = [at[first]!, stop0, stop1];
  let [e0, e1, e2] = [s0, s1, s2];
  let [compute, communication, exposed, any] = [0, 0, 0, 0];
  let time = 0;
  while (e0 < stop0 || e1 < stop1 || e2 < stop2) {
    // The next time at which any interval opens or closes.
    let next = Infinity;
    if (s0 < stop0 && starts[s0]! < next) next = starts[s0]!;
    if (e0 < stop0 && ends[e0]! < next) next = ends[e0]!;
    if (s1 < stop1 && starts[s1]! < next) next = starts[s1]!;
    if (e1 < stop1 && ends[e1]! < next) next = ends[e1]!;
    if (s2 < stop2 && starts[s2]! < next) next = starts[s2]!;
    if (e2 < stop2 && ends[e2]! < next) next = ends[e2]!;
    const open0 = s0 > e0;
    const open1 = s1 > e1;
    if (open0 || open1 || s2 > e2) {
      const length = next - time;
      any += length;
      if (open0) compute += length;
      if (open1) {
        communication += length;
        if (!open0) exposed += length;
      }
    }
    time = next;
    while (s0 < stop0 && starts[s0]! <= next) s0++;
    while (e0 < stop0 && ends[e0]! <= next) e0++;
    while (s1 < stop1 && starts[s1]! <= next) s1++;
    while (e1 < stop1 && ends[e1]! <= next) e1++;
    while (s2 < stop2 && starts[s2]! <= next) s2++;
    while (e2 < stop2 && ends[e2]! <= next) e2++;
  }
  return { compute, communication, exposed, any };
}
