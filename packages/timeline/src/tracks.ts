/**
 * Lays spans out on threads on which they nest: viewers draw a thread as a stack of calls, so two
 * spans of one lane that overlap, neither inside the other, need a thread each.
 */
import type { Seconds } from "@trireme/core";
import { lanes } from "./kind.ts";
import type { Timeline } from "./timeline.ts";

/** One thread of a rank: `depth` 0 is the lane itself, 1 and above hold what does not nest there. */
export interface Track {
  readonly rank: number;
  /** Position in `lanes`. */
  readonly lane: number;
  readonly depth: number;
  /** Number of the thread, unique in the rank: lane + depth × lanes. */
  readonly id: number;
}

/**
 * The thread of each span and the threads in use, ordered by rank and number. `round` maps times to
 * the resolution of the viewer first, so that rounding cannot undo the nesting.
 */
export function tracks(
  t: Timeline,
  round: (time: Seconds) => number,
): { thread: Int32Array; threads: readonly Track[]; order: Uint32Array } {
  const order = Uint32Array.from({ length: t.length }, (_, i) => i);
  const start = Float64Array.from(t.start, round);
  const end = Float64Array.from(t.end, round);
  // By rank, lane, start; the longer first where starts are equal, so that a parent precedes.
  order.sort(
    (a, b) =>
      t.rank[a]! - t.rank[b]! ||
      t.lane[a]! - t.lane[b]! ||
      start[a]! - start[b]! ||
      end[b]! - end[a]! ||
      a - b,
  );
  const thread = new Int32Array(t.length);
  const used = new Map<string, Track>();
  // Per thread of the lane at hand: the ends of the spans that are open on it, outermost first.
  let stacks: number[][] = [];
  let [lastRank, lastLane] = [-1, -1];
  for (const i of order) {
    const rank = t.rank[i]!;
    const lane = t.lane[i]!;
    if (rank !== lastRank || lane !== lastLane) {
      stacks = [];
      [lastRank, lastLane] = [rank, lane];
    }
    let depth = 0;
    for (; ; depth++) {
      const stack = (stacks[depth] ??= []);
      while (stack.length > 0 && stack[stack.length - 1]! <= start[i]!) stack.pop();
      if (stack.length === 0 || stack[stack.length - 1]! >= end[i]!) {
        stack.push(end[i]!);
        break;
      }
    }
    const id = lane + depth * lanes.length;
    thread[i] = id;
    const key = `${rank} ${id}`;
    if (!used.has(key)) used.set(key, { rank, lane, depth, id });
  }
  const threads = [...used.values()].sort((a, b) => a.rank - b.rank || a.id - b.id);
  return { thread, threads, order };
}
