/**
 * What had to end before what could start. A span waits for its parents and for the span before it
 * on its lane (unless messages overlap there); what remains of the time between is its lag. Replayed with its own durations and lags
 * a timeline repeats itself, and with other durations it tells what would have happened.
 *
 * A parent that ends after its child has started (a send and its receive) is a partner: then the
 * child ends with it, not after it. Parents that end after their child are no cause of it (clocks
 * that are out of step); they are counted and left out. Recorded idle spans are waits and left out.
 */
import { type Seconds, TriremeError } from "@trireme/core";
import { lanes, spanKinds } from "./kind.ts";
import { laneOrder } from "./span-order.ts";
import type { Timeline } from "./timeline.ts";

const idle = spanKinds.indexOf("idle");

/** Dependencies of the spans of one timeline; arrays have an entry a span. */
export interface DependencyGraph {
  /** All spans but idle ones, each after everything it waits for. */
  readonly order: Uint32Array;
  /** Spans that had to end first: `before[beforeAt[i]]` to `before[beforeAt[i + 1] - 1]`. */
  readonly beforeAt: Uint32Array;
  readonly before: Uint32Array;
  /** The span that span i ends with; -1 for most. */
  readonly partner: Int32Array;
  /** Time between the end of the last of `before` (or the origin) and the start. */
  readonly lag: Float64Array;
  /** Time between the end of the partner and the end; 0 without one. */
  readonly partnerLag: Float64Array;
  /** Start of the earliest span. */
  readonly origin: Seconds;
  /** Parents that end after their child. */
  readonly violations: number;
}

/** The dependencies of a timeline, in O(n log n). Throws TriremeError `CYCLE` when parents go round. */
export function dependencyGraph(t: Timeline): DependencyGraph {
  const n = t.length;
  const lanePredecessor = lanePredecessors(t);
  const partner = new Int32Array(n).fill(-1);
  const beforeAt = new Uint32Array(n + 1);
  let before = new Uint32Array(t.parents.length + n);
  let violations = 0;
  let kept = 0;
  for (let i = 0; i < n; i++) {
    beforeAt[i] = kept;
    if (t.kind[i] === idle) continue;
    if (lanePredecessor[i]! >= 0) before[kept++] = lanePredecessor[i]!;
    for (let e = t.parentsAt[i]!; e < t.parentsAt[i + 1]!; e++) {
      const parent = t.parents[e]!;
      if (t.kind[parent] === idle || parent === lanePredecessor[i]) continue;
      const end = t.end[parent]!;
      const slack = tolerance(end);
      if (end <= t.start[i]! + slack) before[kept++] = parent;
      else if (end > t.end[i]! + slack) violations++;
      else if (partner[i]! < 0 || end > t.end[partner[i]!]!) partner[i] = parent;
    }
  }
  beforeAt[n] = kept;
  before = before.slice(0, kept);
  let origin = Infinity;
  for (let i = 0; i < n; i++) if (t.kind[i] !== idle) origin = Math.min(origin, t.start[i]!);
  const lag = new Float64Array(n);
  const partnerLag = new Float64Array(n);
  for (let i = 0; i < n; i++) {
    let ready = origin;
    for (let e = beforeAt[i]!; e < beforeAt[i + 1]!; e++) {
      ready = Math.max(ready, t.end[before[e]!]!);
    }
    lag[i] = Math.max(0, t.start[i]! - ready);
    if (partner[i]! >= 0) partnerLag[i] = Math.max(0, t.end[i]! - t.end[partner[i]!]!);
  }
  const order = topologicalOrder(t, beforeAt, before, partner);
  return { order, beforeAt, before, partner, lag, partnerLag, origin, violations };
}

/** Times that differ by less are the same: rounding of clocks and of sums. */
function tolerance(time: Seconds): Seconds {
  return 1e-9 + Math.abs(time) * 1e-12;
}

/** For each span the one on its lane that ended last before it started; -1: none. */
function lanePredecessors(t: Timeline): Int32Array {
  const n = t.length;
  const result = new Int32Array(n).fill(-1);
  const counts = (i: number): boolean => t.kind[i] !== idle;
  const starts = laneOrder(t, (a, b) => t.start[a]! - t.start[b]! || t.end[a]! - t.end[b]!, counts);
  const ends = laneOrder(t, (a, b) => t.end[a]! - t.end[b]! || t.start[a]! - t.start[b]!, counts);
  for (let lane = 0; lane + 1 < starts.at.length; lane++) {
    const stop = starts.at[lane + 1]!;
    if (!isSerial(t, starts.order.subarray(starts.at[lane], stop))) continue;
    let ended = starts.at[lane]!;
    let last = -1;
    for (let k = starts.at[lane]!; k < stop; k++) {
      const i = starts.order[k]!;
      for (; ended < stop; ended++) {
        const j = ends.order[ended]!;
        if (j === i || t.end[j]! > t.start[i]! + tolerance(t.end[j]!)) break;
        // Of two that start together the shorter comes first, and of equals the one added first.
        if ((t.start[j]! - t.start[i]! || t.end[j]! - t.end[i]! || j - i) > 0) break;
        last = j;
      }
      result[i] = last;
    }
  }
  return result;
}

/**
 * Whether the spans of a lane, in order of start, wait for each other. Computing always does; links
 * on which messages overlap carry several at once, and there only parents tell what waited.
 */
function isSerial(t: Timeline, spans: Uint32Array): boolean {
  const lane = lanes[t.lane[spans[0]!]!];
  if (lane === "compute" || lane === "host") return true;
  let end = -Infinity;
  for (const i of spans) {
    if (t.start[i]! < end - tolerance(end)) return false;
    end = Math.max(end, t.end[i]!);
  }
  return true;
}

function topologicalOrder(
  t: Timeline,
  beforeAt: Uint32Array,
  before: Uint32Array,
  partner: Int32Array,
): Uint32Array {
  const n = t.length;
  const afterAt = new Uint32Array(n + 1);
  const missing = new Int32Array(n);
  const eachEdge = (visit: (from: number, to: number) => void): void => {
    for (let i = 0; i < n; i++) {
      for (let e = beforeAt[i]!; e < beforeAt[i + 1]!; e++) visit(before[e]!, i);
      if (partner[i]! >= 0) visit(partner[i]!, i);
    }
  };
  eachEdge((from, to) => {
    afterAt[from + 1]!++;
    missing[to]!++;
  });
  for (let i = 0; i < n; i++) afterAt[i + 1]! += afterAt[i]!;
  const after = new Uint32Array(afterAt[n]!);
  const next = afterAt.slice();
  eachEdge((from, to) => {
    after[next[from]!++] = to;
  });
  const order = new Uint32Array(n);
  let [taken, found, spansInGraph] = [0, 0, 0];
  for (let i = 0; i < n; i++) {
    if (t.kind[i] === idle) continue;
    spansInGraph++;
    if (missing[i] === 0) order[found++] = i;
  }
  while (taken < found) {
    const i = order[taken++]!;
    for (let e = afterAt[i]!; e < afterAt[i + 1]!; e++) {
      if (--missing[after[e]!]! === 0) order[found++] = after[e]!;
    }
  }
  if (found < spansInGraph) {
    const stuck = missing.findIndex((count) => count > 0);
    throw new TriremeError(
      "CYCLE",
      `span ${stuck} (${t.actions[t.action[stuck]!]!}) waits for itself through its parents`,
    );
  }
  return order.slice(0, found);
}

/** When everything would end with these durations and lags, each starting as soon as it can. */
export function replayEnds(
  g: DependencyGraph,
  duration: Float64Array,
  lag: Float64Array,
  partnerLag: Float64Array,
): { readonly ends: Float64Array; readonly makespan: Seconds } {
  const ends = new Float64Array(duration.length);
  let last = g.origin;
  for (const i of g.order) {
    let ready = g.origin;
    for (let e = g.beforeAt[i]!; e < g.beforeAt[i + 1]!; e++) {
      const end = ends[g.before[e]!]!;
      if (end > ready) ready = end;
    }
    const partner = g.partner[i]!;
    ends[i] =
      partner < 0
        ? ready + lag[i]! + duration[i]!
        : Math.max(ready, ends[partner]! + partnerLag[i]!);
    if (ends[i] > last) last = ends[i];
  }
  return { ends, makespan: g.order.length === 0 ? 0 : last - g.origin };
}
