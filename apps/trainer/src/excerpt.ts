/** Parts of timelines: a few ranks, a window of time, several steps in a row. */
import type { Seconds } from "@trireme/core";
import { type Timeline, TimelineBuilder, span, statistics } from "@trireme/timeline";

/** Timelines one after another, each from where the one before ends. */
export function inARow(timelines: readonly Timeline[]): Timeline {
  const builder = new TimelineBuilder();
  let offset: Seconds = 0;
  for (const timeline of timelines) {
    const { start, end } = statistics(timeline);
    for (let i = 0; i < timeline.length; i++) {
      const { index: _, parents: __, step, stage, microbatch, ...rest } = span(timeline, i);
      builder.add({
        ...rest,
        ...known({ step, stage, microbatch }),
        start: rest.start - start + offset,
        end: rest.end - start + offset,
      });
    }
    offset += end - start;
  }
  return builder.finish();
}

/** The spans of the first `count` ranks that begin within `window` of the start, cut off at its end. */
export function beginning(timeline: Timeline, count: number, window: Seconds): Timeline {
  const { start, ranks } = statistics(timeline);
  const chosen = new Set(ranks.slice(0, count).map((rank) => rank.rank));
  const builder = new TimelineBuilder();
  const end = start + window;
  for (let i = 0; i < timeline.length; i++) {
    if (!chosen.has(timeline.rank[i]!) || timeline.start[i]! >= end) continue;
    const { index: _, parents: __, step, stage, microbatch, ...rest } = span(timeline, i);
    builder.add({ ...rest, ...known({ step, stage, microbatch }), end: Math.min(rest.end, end) });
  }
  return builder.finish();
}

/** A span reads -1 where nothing was given; it is written by leaving it out. */
function known(indices: Readonly<Record<"step" | "stage" | "microbatch", number>>): {
  step?: number;
  stage?: number;
  microbatch?: number;
} {
  return Object.fromEntries(Object.entries(indices).filter(([, index]) => index >= 0));
}

/** From the start to the first backward of the rank that has it last; 0 where there is none. */
export function firstBackward(timeline: Timeline): Seconds {
  const { start } = statistics(timeline);
  const first = new Map<number, Seconds>();
  for (let i = 0; i < timeline.length; i++) {
    const { kind, rank, start: at } = span(timeline, i);
    if (kind !== "backward" && kind !== "input-gradient") continue;
    first.set(rank, Math.min(first.get(rank) ?? Infinity, at));
  }
  return Math.max(0, ...first.values()) - (first.size === 0 ? 0 : start);
}

/** The shortest forward or backward: what a picture must resolve. */
export function shortestPass(timeline: Timeline): Seconds {
  let shortest = Infinity;
  for (let i = 0; i < timeline.length; i++) {
    const { kind, start, end } = span(timeline, i);
    const passes = kind === "forward" || kind === "backward" || kind === "input-gradient";
    if (passes && end > start) shortest = Math.min(shortest, end - start);
  }
  return shortest;
}
