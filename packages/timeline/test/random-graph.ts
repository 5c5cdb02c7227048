/** Timelines of random small graphs of spans to test with, each span as early as it can be. */
import fc from "fast-check";
import { type Lane, type SpanKind, type Timeline, TimelineBuilder } from "@trireme/timeline";

/** A span by what it waits for; `parents` are positions before its own. */
export interface Node {
  /** "a" and its position when left out. */
  readonly action?: string;
  readonly rank: number;
  readonly lane: Lane;
  readonly kind: SpanKind;
  readonly duration: number;
  readonly delay: number;
  readonly parents: readonly number[];
}

/** Random nodes on three ranks with two lanes each; delays are 0 unless asked for. */
export function graphs(options: {
  readonly delays: boolean;
  readonly size?: number;
}): fc.Arbitrary<Node[]> {
  const node = fc.record({
    rank: fc.integer({ min: 0, max: 2 }),
    lane: fc.constantFrom<Lane>("compute", "inter"),
    duration: fc.integer({ min: 1, max: 9 }),
    delay: fc.integer({ min: 0, max: options.delays ? 3 : 0 }),
    parents: fc.uniqueArray(fc.nat(1000), { maxLength: 3 }),
  });
  return fc.array(node, { minLength: 1, maxLength: options.size ?? 9 }).map((nodes) =>
    nodes.map((each, i) => ({
      rank: each.rank,
      lane: each.lane,
      kind: each.lane === "compute" ? ("forward" as const) : ("all-reduce" as const),
      duration: each.duration,
      delay: each.delay,
      parents: i === 0 ? [] : [...new Set(each.parents.map((p) => p % i))],
    })),
  );
}

/** Predecessors of each node: parents, and the node before it on its lane. */
export function predecessors(nodes: readonly Node[]): number[][] {
  return nodes.map((node, i) => {
    const before = nodes
      .slice(0, i)
      .findLastIndex((o) => o.rank === node.rank && o.lane === node.lane);
    return [...new Set([...node.parents, ...(before < 0 ? [] : [before])])];
  });
}

/** The timeline in which each node starts `delay` after all that it waits for. */
export function schedule(nodes: readonly Node[]): Timeline {
  const t = new TimelineBuilder();
  const ends: number[] = [];
  predecessors(nodes).forEach((before, i) => {
    const { rank, lane, kind, duration, delay, parents } = nodes[i]!;
    const start = Math.max(0, ...before.map((p) => ends[p]!)) + delay;
    ends.push(start + duration);
    const action = nodes[i]!.action ?? `a${i}`;
    t.add({ rank, lane, kind, action, start, end: start + duration, parents });
  });
  return t.finish();
}
