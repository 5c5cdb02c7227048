import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type Comparison,
  type Timeline,
  TimelineBuilder,
  compare,
  matchSpans,
} from "@trireme/timeline";
import { pipeline } from "./pipeline.ts";
import { type Node, graphs, schedule } from "./random-graph.ts";

/** The causes must add up to the difference, up to rounding of sums. */
function checkSum({ difference, causes }: Comparison): void {
  const sum = Object.values(causes).reduce((x: number, y: number) => x + y, 0);
  expect(sum).toBeCloseTo(difference, 9);
}

/** A training step of two stages with an all-reduce behind the last backward of each. */
function step(change: Partial<Record<string, Partial<Node>>> = {}): Timeline {
  const nodes: Record<string, Node> = {};
  const names: string[] = [];
  const add = (
    name: string,
    rank: number,
    duration: number,
    after: string[],
    reduces = false,
  ): void => {
    nodes[name] = {
      action: name,
      rank,
      lane: reduces ? "inter" : "compute",
      kind: reduces ? "all-reduce" : "forward",
      duration,
      delay: 0,
      parents: after.map((each) => names.indexOf(each)),
      ...change[name],
    };
    names.push(name);
  };
  for (let m = 0; m < 4; m++) {
    add(`0F${m}`, 0, 10, []);
    add(`1F${m}`, 1, 10, [`0F${m}`]);
  }
  for (let m = 0; m < 4; m++) {
    add(`1B${m}`, 1, 20, []);
    add(`0B${m}`, 0, 20, [`1B${m}`]);
  }
  add("1R", 1, 20, ["1B2"], true);
  add("0R", 0, 20, ["0B2"], true);
  add("1O", 1, 5, ["1R"]);
  add("0O", 0, 5, ["0R"]);
  return schedule(names.map((name) => nodes[name]!));
}

test("a timeline does not differ from itself", () => {
  const same = compare(step(), step());
  expect([same.difference, ...Object.values(same.causes)]).toEqual([0, 0, 0, 0, 0, 0, 0]);
  expect(same).toMatchObject({ matched: 20, onlyFirst: 0, onlySecond: 0, actions: [] });
});

test("10 % more on one action is found: 95 % of the difference and more is its computing", () => {
  const found = compare(step(), step({ "1B1": { duration: 22 } }));
  expect(found.difference).toBe(2);
  expect(found.causes.compute / found.difference).toBeGreaterThanOrEqual(0.95);
  expect(found.actions[0]).toMatchObject({ action: "1B1", rank: 1, duration: 2, effect: 2 });
  checkSum(found);
});

test("a late rank is a start delay", () => {
  const found = compare(step(), step({ "0F0": { delay: 7 }, "1F0": {} }));
  // The origin of both is the start of the first span: a rank is late compared with another one.
  expect(found.difference).toBe(0);
  const withEarly = (delay: number): Timeline => {
    const t = new TimelineBuilder();
    t.add({ rank: 2, lane: "host", kind: "load", action: "load", start: 0, end: 1 });
    const base = { lane: "compute", kind: "forward" } as const;
    const a = t.add({ ...base, rank: 0, action: "0F0", start: delay, end: delay + 9 });
    t.add({ ...base, rank: 1, action: "1F0", start: delay + 9, end: delay + 20, parents: [a] });
    return t.finish();
  };
  const late = compare(withEarly(0), withEarly(5));
  expect(late.difference).toBe(5);
  expect(late.causes.startDelay / late.difference).toBeGreaterThanOrEqual(0.95);
  expect(late.actions[0]).toMatchObject({ rank: 0, delay: 5, effect: 5 });
  checkSum(late);
});

test("a lost overlap is found, whether the all-reduce starts late or was made to wait", () => {
  // Hidden behind the last backward in the first; in the second it starts when that has ended.
  for (const change of [{ delay: 20 }, { parents: [15] }]) {
    const second = step({ "0R": change });
    const found = compare(step(), second);
    expect(found.difference).toBeGreaterThan(10);
    expect(found.causes.overlap / found.difference).toBeGreaterThanOrEqual(0.95);
    checkSum(found);
  }
});

test("slower communication, more of it, and other work are told apart", () => {
  const slow = compare(step(), step({ "0R": { duration: 70 } }));
  expect(slow.causes.communication / slow.difference).toBeGreaterThanOrEqual(0.95);
  const loads = compare(step(), step({ "0O": { kind: "checkpoint", duration: 50 } }));
  expect(loads.causes).toMatchObject({ other: 50, compute: -5 });
  expect(loads).toMatchObject({ onlyFirst: 1, onlySecond: 1 });
  checkSum(loads);
});

test("slower arithmetic everywhere is computing, bubbles that it stretches included", () => {
  const found = compare(pipeline(1), pipeline(1.1));
  expect(found.difference).toBeCloseTo(0.9, 12);
  checkSum(found);
});

test("the causes add up to the difference of any two timelines", () => {
  fc.assert(
    fc.property(graphs({ delays: true, size: 25 }), graphs({ delays: true, size: 25 }), (a, b) => {
      const found = compare(schedule(a), schedule(b));
      expect(found.difference).toBe(found.second - found.first);
      checkSum(found);
    }),
  );
});

test("one change to a random step is attributed to its cause entirely", () => {
  fc.assert(
    fc.property(
      graphs({ delays: false, size: 20 }),
      fc.nat(),
      fc.integer({ min: 1, max: 30 }),
      (nodes, pick, by) => {
        const i = pick % nodes.length;
        const changed = nodes.map((node, k) =>
          k === i ? Object.assign({}, node, { duration: node.duration + by }) : node,
        );
        const { difference, causes } = compare(schedule(nodes), schedule(changed));
        const cause = nodes[i]!.kind === "forward" ? causes.compute : causes.communication;
        expect(cause).toBeCloseTo(difference, 9);
      },
    ),
  );
});

test("spans are matched by rank, kind, action and turn, ranks alike by their representative", () => {
  const t = (ranks: readonly number[]): Timeline => {
    const builder = new TimelineBuilder();
    for (const rank of ranks) {
      for (const start of [3, 1]) {
        builder.add({ rank, lane: "compute", kind: "forward", action: "f", start, end: start + 1 });
      }
    }
    return builder.finish();
  };
  expect([...matchSpans(t([0]), t([1, 0]))]).toEqual([-1, -1, 0, 1]);
  expect([...matchSpans(t([0]), t([1, 0]), () => 0)]).toEqual([0, 1, 0, 1]);
});

test("the number of spans to list is a count", () => {
  for (const actions of [NaN, -1, 0.5]) {
    expect(() => compare(pipeline(), pipeline(), { actions })).toThrow(
      `${actions} actions to list: give an integer of at least 0`,
    );
  }
  expect(compare(pipeline(), pipeline(), { actions: 0 }).actions).toEqual([]);
});
