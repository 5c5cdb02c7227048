/**
 * Two timelines of the same work side by side, as predicted and as measured: by how much the second
 * is longer, and where. The makespan of a rank is compute + exposed communication + other + idle
 * (statistics.ts), and so is its mean over ranks; the differences of the parts add up to the whole.
 */
import type { Seconds } from "@trireme/core";
import { statistics } from "./statistics.ts";
import type { Timeline } from "./timeline.ts";

/** Seconds by which the second timeline is longer, split by cause. */
export interface Causes {
  /** More or less arithmetic. */
  readonly compute: Seconds;
  /** More or less communication, were as much of it hidden as in the first timeline. */
  readonly communication: Seconds;
  /** Communication that was hidden and no longer is (negative: the other way). */
  readonly overlap: Seconds;
  /** Loading, checkpoints and the like. */
  readonly other: Seconds;
  /** Waiting before the first span of a rank. */
  readonly startDelay: Seconds;
  /** Waiting after it. */
  readonly bubble: Seconds;
}

/** What `compare` finds; all times are seconds, differences are second minus first. */
export interface Comparison {
  /** Makespans. */
  readonly first: Seconds;
  readonly second: Seconds;
  readonly difference: Seconds;
  /** Add up to `difference`. */
  readonly causes: Causes;
}

/** Compares two timelines; their ranks may differ in number, means over ranks are compared. */
export function compare(first: Timeline, second: Timeline): Comparison {
  const a = means(first);
  const b = means(second);
  // Exposed communication changes with the amount of it and with the part of it that is exposed.
  const part = a.communication > 0 ? a.exposed / a.communication : 1;
  const communication = (b.communication - a.communication) * part;
  return {
    first: a.makespan,
    second: b.makespan,
    difference: b.makespan - a.makespan,
    causes: {
      compute: b.compute - a.compute,
      communication,
      overlap: b.exposed - a.exposed - communication,
      other: b.other - a.other,
      startDelay: b.startDelay - a.startDelay,
      bubble: b.idle - b.startDelay - (a.idle - a.startDelay),
    },
  };
}

function means(t: Timeline): {
  makespan: Seconds;
  compute: Seconds;
  communication: Seconds;
  exposed: Seconds;
  other: Seconds;
  idle: Seconds;
  startDelay: Seconds;
} {
  const s = statistics(t);
  const first = new Map<number, Seconds>();
  for (let i = 0; i < t.length; i++) {
    const seen = first.get(t.rank[i]!);
    if (seen === undefined || t.start[i]! < seen) first.set(t.rank[i]!, t.start[i]!);
  }
  const count = Math.max(1, s.ranks.length);
  const mean = (of: (rank: (typeof s.ranks)[number]) => Seconds): Seconds =>
    s.ranks.reduce((sum, rank) => sum + of(rank), 0) / count;
  return {
    makespan: s.makespan,
    compute: mean((r) => r.compute),
    communication: mean((r) => r.communication),
    exposed: mean((r) => r.exposedCommunication),
    other: mean((r) => r.other),
    idle: mean((r) => r.idle),
    startDelay: mean((r) => (first.get(r.rank) ?? s.start) - s.start),
  };
}
