import fc from "fast-check";
import { expect, test } from "vitest";
import { TimelineBuilder, categoryOf, spanKinds, spans, statistics } from "@trireme/timeline";
import { pipeline } from "./pipeline.ts";

test("1F1B of p ranks and m microbatches has the bubble (p - 1) / (m + p - 1)", () => {
  const s = statistics(pipeline());
  expect(s.makespan).toBe(9);
  expect(s.bubble).toBeCloseTo(1 / 3, 12);
  expect(s.ranks.map((r) => [r.rank, r.busy, r.idle])).toEqual([
    [0, 6, 3],
    [1, 6, 3],
  ]);
  expect(s.byKind.forward).toEqual({ spans: 4, time: 4, bytes: 0, flops: 40 });
  expect(s.byLane.compute?.time).toBe(12);
  expect(s.byKind.send).toBeUndefined();
});

test("communication counts as exposed only where nothing is computed", () => {
  const t = new TimelineBuilder();
  const base = { rank: 3, action: "x" } as const;
  t.add({ ...base, lane: "compute", kind: "forward", start: 10, end: 12 });
  t.add({ ...base, lane: "inter", kind: "all-reduce", start: 11, end: 14 });
  t.add({ ...base, lane: "host", kind: "load", start: 13, end: 15 });
  t.add({ ...base, lane: "host", kind: "idle", start: 15, end: 20 });
  expect(statistics(t.finish())).toMatchObject({
    start: 10,
    end: 20,
    bubble: 0.6,
    exposedCommunication: 0.2,
    overlap: 1 / 3,
    ranks: [
      {
        rank: 3,
        spans: 4,
        busy: 5,
        idle: 5,
        compute: 2,
        communication: 3,
        exposedCommunication: 2,
        overlap: 1,
        other: 1,
      },
    ],
  });
});

test("statistics agree with counting unit cells, and busy + idle = makespan", () => {
  const cell = fc.record({
    rank: fc.integer({ min: 0, max: 2 }),
    kind: fc.constantFrom(...spanKinds),
    start: fc.integer({ min: 0, max: 19 }),
    length: fc.integer({ min: 0, max: 8 }),
  });
  fc.assert(
    fc.property(fc.array(cell, { minLength: 1 }), (cells) => {
      const builder = new TimelineBuilder();
      for (const { rank, kind, start, length } of cells) {
        builder.add({ rank, kind, lane: "compute", action: "", start, end: start + length });
      }
      const t = builder.finish();
      const s = statistics(t);
      for (const r of s.ranks) {
        expect(r.busy + r.idle).toBe(s.makespan);
        expect(r.compute + r.exposedCommunication + r.other + r.idle).toBe(s.makespan);
        const own = [...spans(t)].filter((each) => each.rank === r.rank);
        const covered = { compute: 0, communication: 0, exposed: 0, any: 0 };
        for (let x = s.start; x < s.end; x++) {
          const open = new Set(
            own.filter((o) => o.start <= x && o.end > x).map((o) => categoryOf(o.kind)),
          );
          open.delete("idle");
          if (open.has("compute")) covered.compute++;
          if (open.has("communication")) covered.communication++;
          if (open.has("communication") && !open.has("compute")) covered.exposed++;
          if (open.size > 0) covered.any++;
        }
        expect(r.spans).toBe(own.length);
        expect(r.compute).toBe(covered.compute);
        expect(r.communication).toBe(covered.communication);
        expect(r.exposedCommunication).toBe(covered.exposed);
        expect(r.busy).toBe(covered.any);
      }
    }),
  );
});

test("an empty timeline has no ranks and no makespan", () => {
  const s = statistics(new TimelineBuilder({ ranks: 2 }).finish());
  expect(s).toMatchObject({ start: 0, end: 0, makespan: 0, ranks: [], bubble: 0, overlap: 1 });
});
