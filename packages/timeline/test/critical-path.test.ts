import fc from "fast-check";
import { expect, test } from "vitest";
import { TimelineBuilder, criticalPath, span } from "@trireme/timeline";
import { pipeline } from "./pipeline.ts";
import { graphs, predecessors, schedule } from "./random-graph.ts";

test("the critical path is the longest chain, and slack what is missing to it: brute force", () => {
  fc.assert(
    fc.property(graphs({ delays: false }), (nodes) => {
      const before = predecessors(nodes);
      const chains: number[][] = [];
      const extend = (chain: number[]): void => {
        const last = before[chain[0]!]!;
        chains.push(chain);
        for (const p of last) extend([p, ...chain]);
      };
      nodes.forEach((_, i) => extend([i]));
      const length = (chain: number[]): number =>
        chain.reduce((sum, i) => sum + nodes[i]!.duration, 0);
      const longest = Math.max(...chains.map(length));

      const { path, length: found, slack } = criticalPath(schedule(nodes));
      expect(found).toBe(longest);
      expect(path.reduce((sum, each) => sum + each.delay + each.time, 0)).toBe(longest);
      expect(chains.map(String)).toContain(String(path.map((each) => each.index)));
      nodes.forEach((_, i) => {
        const through = Math.max(...chains.filter((chain) => chain.includes(i)).map(length));
        expect(slack[i]).toBe(longest - through);
      });
    }),
  );
});

test("delays belong to the path: times and delays on it add up to the makespan", () => {
  fc.assert(
    fc.property(graphs({ delays: true, size: 30 }), (nodes) => {
      const t = schedule(nodes);
      const { path, length, slack } = criticalPath(t);
      expect(path.reduce((sum, each) => sum + each.delay + each.time, 0)).toBe(length);
      // The path goes back to a span that waited for nothing but its own delay.
      expect(span(t, path[0]!.index).start).toBe(
        t.start.reduce((a, b) => Math.min(a, b)) + path[0]!.delay,
      );
      expect(slack[path.at(-1)!.index]).toBe(0);
    }),
  );
});

test("a span that ends later by its slack does not move the end, by more it does", () => {
  fc.assert(
    fc.property(graphs({ delays: false }), fc.nat(), (nodes, pick) => {
      const i = pick % nodes.length;
      const { length, slack } = criticalPath(schedule(nodes));
      const stretched = (by: number): number => {
        const longer = nodes.map((node, k) =>
          k === i ? Object.assign({}, node, { duration: node.duration + by }) : node,
        );
        return criticalPath(schedule(longer)).length;
      };
      expect(stretched(slack[i]!)).toBe(length);
      expect(stretched(slack[i]! + 1)).toBe(length + 1);
    }),
  );
});

test("a receive ends with its send, and the path goes through both", () => {
  const t = new TimelineBuilder();
  const f = t.add({ rank: 0, lane: "compute", kind: "forward", action: "0F0", start: 0, end: 2 });
  const message = { lane: "inter", start: 2, end: 5 } as const;
  const s = t.add({ rank: 0, kind: "send", action: "0SEND_F0", parents: [f], ...message });
  const r = t.add({ rank: 1, kind: "receive", action: "1RECV_F0", parents: [s], ...message });
  t.add({ rank: 1, lane: "compute", kind: "idle", action: "wait", start: 0, end: 5 });
  t.add({
    rank: 1,
    lane: "compute",
    kind: "forward",
    action: "1F0",
    start: 5,
    end: 9,
    parents: [r],
  });
  t.add({ rank: 0, lane: "compute", kind: "forward", action: "0F1", start: 2, end: 4 });
  const timeline = t.finish();
  const { path, length, slack, violations } = criticalPath(timeline);
  expect(path.map((each) => [timeline.actions[timeline.action[each.index]!], each.time])).toEqual([
    ["0F0", 2],
    ["0SEND_F0", 3],
    ["1RECV_F0", 0],
    ["1F0", 4],
  ]);
  expect([length, violations]).toEqual([9, 0]);
  expect([...slack]).toEqual([0, 0, 0, Infinity, 0, 5]);
});

test("a pipeline's last backward is reached through all of its stages", () => {
  expect(criticalPath(pipeline()).length).toBe(9);
  expect(criticalPath(new TimelineBuilder().finish())).toMatchObject({ path: [], length: 0 });
});

test("parents that end after their child are counted, and parents that go round refused", () => {
  const t = new TimelineBuilder();
  const base = { lane: "compute", kind: "forward" } as const;
  const a = t.add({ ...base, rank: 0, action: "a", start: 0, end: 9 });
  t.add({ ...base, rank: 1, action: "b", start: 1, end: 2, parents: [a] });
  expect(criticalPath(t.finish()).violations).toBe(1);
  const c = t.add({ ...base, rank: 2, action: "c", start: 0, end: 9, parents: [a] });
  t.link(a, c);
  expect(() => criticalPath(t.finish())).toThrow("waits for itself through its parents");
});
