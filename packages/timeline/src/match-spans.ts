/** Which span of one timeline is the same work as which of another. */
import { NumberMap } from "./number-map.ts";
import { rankOrder } from "./span-order.ts";
import type { Timeline } from "./timeline.ts";

/**
 * For each span of `second` the span of `first` that has the same rank, kind and action, or -1. Where
 * a rank does the same action more than once, the first time goes with the first, the second with
 * the second, in order of start. `rankOf` tells the rank of `first` that stands for a rank of
 * `second`, when one of many alike was simulated.
 */
export function matchSpans(
  first: Timeline,
  second: Timeline,
  rankOf: (rank: number) => number = (rank) => rank,
): Int32Array {
  const codes = new Map(first.actions.map((action, code) => [action, code]));
  const toFirst = Int32Array.from(second.actions, (action) => codes.get(action) ?? -1);
  const width = Math.max(1, first.actions.length);
  const key = (rank: number, kind: number, action: number): number =>
    (rank * 32 + kind) * width + action;
  // By what was done: the first span, and after each the next of the same.
  const head = new NumberMap(first.length);
  const next = new Int32Array(first.length).fill(-1);
  const inFirst = byStart(first);
  for (let k = inFirst.length - 1; k >= 0; k--) {
    const i = inFirst[k]!;
    const what = key(first.rank[i]!, first.kind[i]!, first.action[i]!);
    next[i] = head.get(what, -1);
    head.set(what, i);
  }
  const match = new Int32Array(second.length).fill(-1);
  // The span that the next of the same in `second` goes with.
  const due = new NumberMap(second.length);
  for (const j of byStart(second)) {
    const action = toFirst[second.action[j]!]!;
    if (action < 0) continue;
    const own = key(second.rank[j]!, second.kind[j]!, action);
    let i = due.get(own, -2);
    if (i === -2) i = head.get(key(rankOf(second.rank[j]!), second.kind[j]!, action), -1);
    match[j] = i;
    due.set(own, i < 0 ? -1 : next[i]!);
  }
  return match;
}

function byStart(t: Timeline): Uint32Array {
  return rankOrder(t, (a, b) => t.start[a]! - t.start[b]!).order;
}
