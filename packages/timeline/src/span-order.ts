/**
 * Spans lane by lane in order of their times. Spans mostly come in that order already, so they are
 * dealt to their lanes first, in one pass, and only lanes that are out of order are sorted.
 */
import type { Timeline } from "./timeline.ts";

/** Spans of lane k are `order[at[k]]` to `order[at[k + 1] - 1]`; lanes are sorted by rank and lane. */
export interface LaneOrder {
  readonly order: Uint32Array;
  readonly at: Uint32Array;
}

/**
 * The spans that `include` takes, by rank and lane, there by `compare`, and where that is 0 in order
 * of entry.
 */
export function laneOrder(
  t: Timeline,
  compare: (a: number, b: number) => number,
  include: (i: number) => boolean = () => true,
): LaneOrder {
  return grouped(t, (i) => t.rank[i]! * 8 + t.lane[i]!, compare, include);
}

/** The same by rank alone. */
export function rankOrder(
  t: Timeline,
  compare: (a: number, b: number) => number,
  include: (i: number) => boolean = () => true,
): LaneOrder {
  return grouped(t, (i) => t.rank[i]!, compare, include);
}

function grouped(
  t: Timeline,
  groupOf: (i: number) => number,
  compare: (a: number, b: number) => number,
  include: (i: number) => boolean,
): LaneOrder {
  const n = t.length;
  const groups = new Map<number, number>();
  const group = new Int32Array(n);
  const counts: number[] = [];
  let [lastGroup, lastId] = [-1, -1];
  for (let i = 0; i < n; i++) {
    if (!include(i)) {
      group[i] = -1;
      continue;
    }
    const g = groupOf(i);
    if (g !== lastGroup) {
      lastGroup = g;
      lastId = groups.get(g) ?? -1;
      if (lastId < 0) {
        lastId = counts.push(0) - 1;
        groups.set(g, lastId);
      }
    }
    group[i] = lastId;
    counts[lastId]!++;
  }
  const sorted = [...groups].sort(([a], [b]) => a - b);
  const at = new Uint32Array(sorted.length + 1);
  const next = new Uint32Array(sorted.length);
  sorted.forEach(([, id], k) => {
    next[id] = at[k]!;
    at[k + 1] = at[k]! + counts[id]!;
  });
  const order = new Uint32Array(at[sorted.length]!);
  for (let i = 0; i < n; i++) if (group[i]! >= 0) order[next[group[i]!]!++] = i;
  for (let k = 0; k < sorted.length; k++) {
    const part = order.subarray(at[k], at[k + 1]);
    for (let i = 1; i < part.length; i++) {
      if (compare(part[i - 1]!, part[i]!) <= 0) continue;
      part.sort((a, b) => compare(a, b) || a - b);
      break;
    }
  }
  return { order, at };
}
