import fc from "fast-check";
import { expect, test } from "vitest";
import {
  TimelineBuilder,
  rankWaits,
  select,
  span,
  spans,
  statistics,
  timeMatrix,
  totals,
} from "@trireme/timeline";
import { pipeline } from "./pipeline.ts";
import { contents, timelines } from "./random-timeline.ts";

test("totals by any property add up to the whole", () => {
  const time = fc.integer({ min: 0, max: 1000 });
  fc.assert(
    fc.property(
      timelines(time),
      fc.constantFrom("rank", "lane", "kind", "action", "step", "stage", "microbatch"),
      (t, by) => {
        const rows = totals(t, by);
        const values = [...spans(t)].map((each) => each[by]);
        expect(new Set(rows.map((row) => row.value))).toEqual(new Set(values));
        expect(rows.reduce((sum, row) => sum + row.spans, 0)).toBe(t.length);
        for (const row of rows) {
          const own = [...spans(t)].filter((each) => each[by] === row.value);
          expect(row.spans).toBe(own.length);
          expect(row.time).toBe(own.reduce((sum, each) => sum + each.end - each.start, 0));
        }
      },
    ),
  );
});

test("a selection has the chosen spans and the parents among them", () => {
  fc.assert(
    fc.property(timelines(fc.integer({ min: 0, max: 9 })), fc.func(fc.boolean()), (t, choose) => {
      const chosen = [...spans(t)].filter((each) => choose(each.index));
      const part = select(t, (i) => choose(i));
      expect(part.length).toBe(chosen.length);
      chosen.forEach((each, k) => {
        const got = span(part, k);
        expect(got.parents.map((p) => chosen[p]!.index)).toEqual(
          each.parents.filter((p) => choose(p)),
        );
        expect({ ...got, index: each.index, parents: each.parents }).toEqual(each);
      });
    }),
  );
  const all = pipeline();
  expect(contents(select(all, () => true))).toEqual(contents(all));
  expect(statistics(select(all, (i) => all.stage[i] === 1)).makespan).toBe(6);
});

test("the time matrix holds mean forwards and backwards by machine and step", () => {
  const t = new TimelineBuilder();
  const add = (
    rank: number,
    step: number,
    kind: "forward" | "input-gradient" | "weight-gradient",
    time: number,
  ): void => {
    t.add({ rank, step, kind, lane: "compute", action: kind, start: 0, end: time });
  };
  for (const rank of [0, 1, 2, 3]) {
    add(rank, 4, "forward", rank + 1);
    add(rank, 4, "input-gradient", 2);
    add(rank, 4, "weight-gradient", 3);
  }
  add(3, 5, "forward", 7);
  const m = timeMatrix(t.finish(), (rank) => Math.floor(rank / 2) + 10);
  expect([m.machines, m.steps]).toEqual([
    [10, 11],
    [4, 5],
  ]);
  expect([...m.forward]).toEqual([1.5, NaN, 3.5, 7]);
  expect([...m.backward]).toEqual([5, NaN, 5, NaN]);
});

test("waiting is laid to the rank that what was needed came from", () => {
  const t = new TimelineBuilder();
  const f = t.add({ rank: 0, lane: "compute", kind: "forward", action: "0F0", start: 0, end: 3 });
  const s = t.add({
    rank: 0,
    lane: "inter",
    kind: "send",
    action: "0SEND_F0",
    start: 3,
    end: 5,
    bytes: 8,
    parents: [f],
  });
  const r = t.add({
    rank: 1,
    lane: "inter",
    kind: "receive",
    action: "1RECV_F0",
    start: 3,
    end: 5,
    bytes: 8,
    parents: [s],
  });
  t.add({
    rank: 1,
    lane: "compute",
    kind: "forward",
    action: "1F0",
    start: 5,
    end: 6,
    parents: [r],
  });
  t.add({ rank: 1, lane: "compute", kind: "forward", action: "1F1", start: 8, end: 9 });
  // The gap before 1F1 has no cause on another rank.
  expect(rankWaits(t.finish())).toEqual([{ from: 0, to: 1, dependencies: 1, bytes: 8, waited: 5 }]);
});
