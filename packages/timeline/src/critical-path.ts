/**
 * The chain of spans that the makespan consists of, and how late every other span could have ended
 * without making it longer (Kelley and Walker, Critical-path planning and scheduling, 1959).
 */
import type { Seconds } from "@trireme/core";
import { dependencyGraph } from "./dependency-graph.ts";
import type { Timeline } from "./timeline.ts";

/** One span of the critical path. */
export interface CriticalSpan {
  readonly index: number;
  /** Time on the path before it that no dependency explains: it could have started, and did not. */
  readonly delay: Seconds;
  /** Time of it on the path: its duration, or of two that end together what the second adds. */
  readonly time: Seconds;
}

/** The critical path of a timeline, and the slack of all its spans. */
export interface CriticalPath {
  /** First to last; delays and times add up to `length`. */
  readonly path: readonly CriticalSpan[];
  /** From the first start to the last end, recorded idle spans left out. */
  readonly length: Seconds;
  /**
   * By span: how much later it could have ended without a later last end, if all that follows starts
   * as soon as it can. Delays of what follows count as slack. Idle spans have Infinity.
   */
  readonly slack: Float64Array;
  /** Parents that end after their child, and were left out. */
  readonly violations: number;
}

/** The critical path, in O(n log n). Throws TriremeError `CYCLE` when parents go round. */
export function criticalPath(t: Timeline): CriticalPath {
  const g = dependencyGraph(t);
  const slack = new Float64Array(t.length).fill(Infinity);
  let last = -1;
  for (const i of g.order) if (last < 0 || t.end[i]! > t.end[last]!) last = i;
  if (last < 0) return { path: [], length: 0, slack, violations: 0 };

  // Latest ends, from the last span back.
  const latest = new Float64Array(t.length).fill(t.end[last]!);
  for (let k = g.order.length - 1; k >= 0; k--) {
    const i = g.order[k]!;
    slack[i] = Math.max(0, latest[i]! - t.end[i]!);
    const partner = g.partner[i]!;
    // What starts after its own start may end when it must start; a partner when it must end.
    const mustStart = latest[i]! - (partner < 0 ? t.end[i]! - t.start[i]! : 0);
    for (let e = g.beforeAt[i]!; e < g.beforeAt[i + 1]!; e++) {
      const p = g.before[e]!;
      latest[p] = Math.min(latest[p]!, mustStart);
    }
    if (partner >= 0) {
      latest[partner] = Math.min(latest[partner]!, latest[i]! - g.partnerLag[i]!);
    }
  }

  const path: CriticalSpan[] = [];
  for (let i = last; ;) {
    const partner = g.partner[i]!;
    if (partner >= 0) {
      path.push({ index: i, delay: 0, time: g.partnerLag[i]! });
      i = partner;
      continue;
    }
    path.push({ index: i, delay: g.lag[i]!, time: t.end[i]! - t.start[i]! });
    let cause = -1;
    for (let e = g.beforeAt[i]!; e < g.beforeAt[i + 1]!; e++) {
      const p = g.before[e]!;
      if (cause < 0 || t.end[p]! > t.end[cause]!) cause = p;
    }
    if (cause < 0) break;
    i = cause;
  }
  path.reverse();
  return { path, length: t.end[last]! - g.origin, slack, violations: g.violations };
}
