/**
 * Where the time of each rank went. Every instant of the makespan is counted once a rank: computing
 * first, then communication that no computing hides, then anything else that keeps it busy, else
 * idle. So busy + idle = makespan on every rank, whatever overlaps.
 */
import type { Bytes, Flops, Seconds } from "@trireme/core";
import { type Category, type Lane, type SpanKind, categoryOf, lanes, spanKinds } from "./kind.ts";
import { coverage } from "./coverage.ts";
import type { Timeline } from "./timeline.ts";

/** Where the makespan of one rank went: compute + exposedCommunication + other + idle = makespan. */
export interface RankStatistics {
  readonly rank: number;
  readonly spans: number;
  /** Time with any span other than idle ones: makespan - idle. */
  readonly busy: Seconds;
  /** Time in which nothing ran. */
  readonly idle: Seconds;
  /** Time in which something was computed. */
  readonly compute: Seconds;
  /** Time in which something was communicated, hidden or not. */
  readonly communication: Seconds;
  /** Time of communication behind which nothing was computed. */
  readonly exposedCommunication: Seconds;
  /** Time of communication hidden behind computing. */
  readonly overlap: Seconds;
  /** Time of loading, checkpoints and the like with neither computing nor communication. */
  readonly other: Seconds;
}

/** Spans of one kind or lane, their times added up without regard to what overlaps. */
export interface SpanSum {
  readonly spans: number;
  readonly time: Seconds;
  readonly bytes: Bytes;
  readonly flops: Flops;
}

/** Statistics of a timeline; fractions are 0 when the makespan is 0. */
export interface Statistics {
  readonly start: Seconds;
  readonly end: Seconds;
  readonly makespan: Seconds;
  /** Ranks that have spans, ascending. */
  readonly ranks: readonly RankStatistics[];
  /** Mean over ranks of the time neither computing nor in exposed communication, of the makespan. */
  readonly bubble: number;
  /** Mean over ranks of the exposed communication, of the makespan. */
  readonly exposedCommunication: number;
  /** Communication hidden behind computing, of all communication; 1 when there is none. */
  readonly overlap: number;
  readonly byKind: Readonly<Partial<Record<SpanKind, SpanSum>>>;
  readonly byLane: Readonly<Partial<Record<Lane, SpanSum>>>;
}

const counted: readonly Category[] = ["compute", "communication", "other"];
/** Position in `counted` of each kind; -1 for idle. */
const categoryOfKind = Int8Array.from(spanKinds, (kind) => counted.indexOf(categoryOf(kind)));

/** Statistics of all spans: time O(n) when each rank's spans come in order, O(n log n) otherwise. */
export function statistics(t: Timeline): Statistics {
  const { present, at, starts, ends } = segments(t);
  let start = Infinity;
  let end = -Infinity;
  for (let i = 0; i < t.length; i++) {
    if (t.start[i]! < start) start = t.start[i]!;
    if (t.end[i]! > end) end = t.end[i]!;
  }
  if (t.length === 0) start = end = 0;
  const makespan = end - start;

  const ranks: RankStatistics[] = [];
  let [bubble, exposed, communication, overlap] = [0, 0, 0, 0];
  for (let r = 0; r < present.rank.length; r++) {
    const covered = coverage(starts, ends, at, r * counted.length);
    const idle = Math.max(0, makespan - covered.any);
    ranks.push({
      rank: present.rank[r]!,
      spans: present.spans[r]!,
      busy: makespan - idle,
      idle,
      compute: covered.compute,
      communication: covered.communication,
      exposedCommunication: covered.exposed,
      overlap: covered.communication - covered.exposed,
      other: covered.any - covered.compute - covered.exposed,
    });
    // Rounding may leave a hair below 0.
    bubble += Math.max(0, makespan - covered.compute - covered.exposed);
    exposed += covered.exposed;
    communication += covered.communication;
    overlap += covered.communication - covered.exposed;
  }
  const whole = makespan * ranks.length;
  return {
    start,
    end,
    makespan,
    ranks,
    bubble: whole > 0 ? bubble / whole : 0,
    exposedCommunication: whole > 0 ? exposed / whole : 0,
    overlap: communication > 0 ? overlap / communication : 1,
    byKind: sums(t, t.kind, spanKinds),
    byLane: sums(t, t.lane, lanes),
  };
}

interface Segments {
  readonly present: { readonly rank: Int32Array; readonly spans: Uint32Array };
  /** Segment s = (position of rank) × 3 + (position of category) is starts[at[s]..at[s + 1]]. */
  readonly at: Uint32Array;
  readonly starts: Float64Array;
  readonly ends: Float64Array;
}

/** Start and end times gathered by rank and category, each sorted on its own. */
function segments(t: Timeline): Segments {
  const rank = Int32Array.from(new Set(t.rank)).sort();
  const position = new Map<number, number>();
  rank.forEach((r, i) => position.set(r, i));
  const spans = new Uint32Array(rank.length);
  const at = new Uint32Array(rank.length * counted.length + 1);
  const segment = new Int32Array(t.length);
  let [lastRank, lastPosition] = [-1, -1];
  for (let i = 0; i < t.length; i++) {
    const r = t.rank[i]!;
    if (r !== lastRank) {
      lastPosition = position.get(r)!;
      lastRank = r;
    }
    spans[lastPosition]!++;
    const category = categoryOfKind[t.kind[i]!]!;
    segment[i] = category < 0 ? -1 : lastPosition * counted.length + category;
    if (category >= 0) at[segment[i]! + 1]!++;
  }
  for (let s = 0; s + 1 < at.length; s++) at[s + 1]! += at[s]!;
  const next = at.slice();
  const starts = new Float64Array(at[at.length - 1]!);
  const ends = new Float64Array(starts.length);
  for (let i = 0; i < t.length; i++) {
    const s = segment[i]!;
    if (s < 0) continue;
    const to = next[s]!++;
    starts[to] = t.start[i]!;
    ends[to] = t.end[i]!;
  }
  for (let s = 0; s + 1 < at.length; s++) {
    sortUnlessSorted(starts.subarray(at[s], at[s + 1]));
    sortUnlessSorted(ends.subarray(at[s], at[s + 1]));
  }
  return { present: { rank, spans }, at, starts, ends };
}

function sortUnlessSorted(a: Float64Array): void {
  for (let i = 1; i < a.length; i++) {
    if (a[i]! < a[i - 1]!) {
      a.sort();
      return;
    }
  }
}

function sums<Name extends string>(
  t: Timeline,
  codes: Uint8Array,
  names: readonly Name[],
): Partial<Record<Name, SpanSum>> {
  const spans = new Float64Array(names.length);
  const time = new Float64Array(names.length);
  const bytes = new Float64Array(names.length);
  const flops = new Float64Array(names.length);
  for (let i = 0; i < t.length; i++) {
    const code = codes[i]!;
    spans[code]!++;
    time[code]! += t.end[i]! - t.start[i]!;
    bytes[code]! += t.bytes[i]!;
    flops[code]! += t.flops[i]!;
  }
  const out: Partial<Record<Name, SpanSum>> = {};
  names.forEach((name, code) => {
    if (spans[code] === 0) return;
    out[name] = {
      spans: spans[code]!,
      time: time[code]!,
      bytes: bytes[code]!,
      flops: flops[code]!,
    };
  });
  return out;
}
