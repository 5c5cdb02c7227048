/**
 * Which rank waits for which: the dependencies between ranks, and the time that each lets another's
 * computing stand still.
 */
import type { Bytes, Seconds } from "@trireme/core";
import { dependencyGraph } from "./dependency-graph.ts";
import { categoryOf, spanKinds } from "./kind.ts";
import type { Timeline } from "./timeline.ts";

/** What one rank depends on another for. */
export interface RankWait {
  /** The rank that is waited for, and the one that waits. */
  readonly from: number;
  readonly to: number;
  /** Spans of `to` with parents on `from`, and the bytes that those moved. */
  readonly dependencies: number;
  readonly bytes: Bytes;
  /** Time in which `to` did not compute because what it needed had not come from `from`. */
  readonly waited: Seconds;
}

const computes = spanKinds.map((kind) => categoryOf(kind) === "compute");

/**
 * Waiting by pair of ranks, by rank waited for and then by rank that waits. A gap before a
 * computation belongs to the rank of the last thing it needed, followed back through the
 * communication of its own rank. Throws TriremeError `CYCLE` when parents go round.
 */
export function rankWaits(t: Timeline): readonly RankWait[] {
  const g = dependencyGraph(t);
  const pairs = new Map<
    string,
    { from: number; to: number; dependencies: number; bytes: number; waited: number }
  >();
  const pair = (
    from: number,
    to: number,
  ): { dependencies: number; bytes: number; waited: number } => {
    const key = `${from} ${to}`;
    let found = pairs.get(key);
    if (found === undefined) {
      found = { from, to, dependencies: 0, bytes: 0, waited: 0 };
      pairs.set(key, found);
    }
    return found;
  };
  /** The last thing that span i waited for; -1: nothing. */
  const cause = (i: number): number => {
    let last = g.partner[i]!;
    for (let e = g.beforeAt[i]!; e < g.beforeAt[i + 1]!; e++) {
      const p = g.before[e]!;
      if (last < 0 || t.end[p]! > t.end[last]!) last = p;
    }
    return last;
  };
  for (let i = 0; i < t.length; i++) {
    for (let e = t.parentsAt[i]!; e < t.parentsAt[i + 1]!; e++) {
      const parent = t.parents[e]!;
      if (t.rank[parent] === t.rank[i]) continue;
      const p = pair(t.rank[parent]!, t.rank[i]!);
      p.dependencies++;
      p.bytes += t.bytes[i]!;
    }
  }
  // When each rank last computed, span by span in order of time.
  const until = new Map<number, Seconds>();
  const order = Uint32Array.from(g.order)
    .filter((i) => computes[t.kind[i]!]!)
    .sort((a, b) => t.start[a]! - t.start[b]! || a - b);
  for (const i of order) {
    const rank = t.rank[i]!;
    const gap = t.start[i]! - (until.get(rank) ?? g.origin);
    until.set(rank, Math.max(until.get(rank) ?? g.origin, t.end[i]!));
    if (!(gap > 0)) continue;
    let c = cause(i);
    while (c >= 0 && t.rank[c] === rank && !computes[t.kind[c]!]!) c = cause(c);
    if (c >= 0 && t.rank[c] !== rank) pair(t.rank[c]!, rank).waited += gap;
  }
  return [...pairs.values()].sort((a, b) => a.from - b.from || a.to - b.to);
}
