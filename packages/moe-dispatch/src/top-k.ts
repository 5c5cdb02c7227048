/**
 * The k largest of a row, in descending order; of equal values the lowest index comes first. One
 * pass against the least value kept: after a few dozen entries nearly every comparison fails at
 * once, so a row costs little more than reading it.
 */
import type { Floats } from "./routing.ts";

/**
 * Writes the indices (relative to `start`) of the `k` largest of `values[start, start + count)` to
 * `ids[at, at + k)`. −∞ is never chosen; where fewer than k values are left, the rest is −1.
 *
 * @param kept Scratch of at least k numbers; holds the chosen values afterwards, −∞ for none.
 * @returns How many were chosen; −1 when a value is NaN or +∞, which have no place in the order.
 */
export function selectTopK(
  values: Floats,
  start: number,
  count: number,
  k: number,
  ids: Int32Array,
  at: number,
  kept: Float64Array,
): number {
  if (k === 0) return 0;
  let filled = 0;
  let least = -Infinity;
  for (let e = 0; e < count; e++) {
    const v = values[start + e]!;
    // NaN fails this test and is caught below, so that it costs nothing here.
    if (v <= least) continue;
    if (!(v < Infinity)) return -1;
    let i = filled < k ? filled++ : k - 1;
    while (i > 0 && kept[i - 1]! < v) {
      kept[i] = kept[i - 1]!;
      ids[at + i] = ids[at + i - 1]!;
      i--;
    }
    kept[i] = v;
    ids[at + i] = e;
    if (filled === k) least = kept[k - 1]!;
  }
  for (let i = filled; i < k; i++) {
    kept[i] = -Infinity;
    ids[at + i] = -1;
  }
  return filled;
}
