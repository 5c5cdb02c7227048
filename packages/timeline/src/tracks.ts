/**
 * Lays spans out on threads on which they nest: viewers draw a thread as a stack of calls, so two
 * spans of one lane that overlap, neither inside the other, need a thread each.
 */
import type { Seconds } from "@trireme/core";
import { lanes } from "./kind.ts";
import { laneOrder } from "./span-order.ts";
import type { Timeline } from "./timeline.ts";

/** One thread of a rank: `depth` 0 is the lane itself, 1 and above hold what does not nest there. */
interface Track {
  readonly rank: number;
  /** Position in `lanes`. */
  readonly lane: number;
  readonly depth: number;
  /** Number of the thread, unique in the rank: lane + depth × lanes. */
  readonly id: number;
}

/** The thread of each span by its number, the threads by rank and number, and the spans in order. */
export interface Tracks {
  readonly thread: Int32Array;
  readonly threads: readonly Track[];
  /** Spans by rank, lane and start, the longer first where starts are equal. */
  readonly order: Uint32Array;
  /** Rounded times. */
  readonly start: Float64Array;
  readonly end: Float64Array;
}

/** Lays out all spans; `round` maps times to the viewer's resolution first, so that it cannot undo nesting. */
export function tracks(t: Timeline, round: (time: Seconds) => number): Tracks {
  const start = t.start.map(round);
  const end = t.end.map(round);
  const { order, at } = laneOrder(t, (a, b) => start[a]! - start[b]! || end[b]! - end[a]!);
  const thread = new Int32Array(t.length);
  const threads: Track[] = [];
  for (let k = 0; k + 1 < at.length; k++) {
    const first = order[at[k]!]!;
    const [rank, lane] = [t.rank[first]!, t.lane[first]!];
    // Per thread of the lane: the ends of the spans that are open on it, outermost first.
    const stacks: number[][] = [];
    for (let e = at[k]!; e < at[k + 1]!; e++) {
      const i = order[e]!;
      let depth = 0;
      for (; ; depth++) {
        let stack = stacks[depth];
        if (stack === undefined) {
          stack = stacks[depth] = [];
          threads.push({ rank, lane, depth, id: lane + depth * lanes.length });
        }
        while (stack.length > 0 && stack[stack.length - 1]! <= start[i]!) stack.pop();
        if (stack.length === 0 || stack[stack.length - 1]! >= end[i]!) {
          stack.push(end[i]!);
          break;
        }
      }
      thread[i] = lane + depth * lanes.length;
    }
  }
  threads.sort((a, b) => a.rank - b.rank || a.id - b.id);
  return { thread, threads, order, start, end };
}
