import fc from "fast-check";
import { AggregateRecorder, type Label, TimelineRecorder } from "@trireme/simulator";
import { statistics } from "@trireme/timeline";
import { expect, test } from "vitest";

const labels: readonly Label[] = [
  { kind: "forward", lane: "compute", action: "F", flops: 7 },
  { kind: "all-reduce", lane: "inter", action: "sum", bytes: 3 },
  { kind: "send", lane: "intra", action: "send", bytes: 5 },
  { kind: "load", lane: "host", action: "load" },
];
const span = fc.record({
  rank: fc.integer({ min: 0, max: 1 }),
  label: fc.integer({ min: 0, max: labels.length - 1 }),
  start: fc.integer({ min: 0, max: 40 }),
  length: fc.integer({ min: 0, max: 12 }),
});

test("sums of spans are the statistics of their timeline", () => {
  fc.assert(
    fc.property(fc.array(span, { minLength: 1, maxLength: 60 }), (list) => {
      const sums = new AggregateRecorder(labels, 2);
      const recorder = new TimelineRecorder(labels);
      // A program starts at 0.
      const first = { rank: 0, label: 3, start: 0, length: 1 };
      const ended = [first, ...list].map((s) => ({ ...s, end: s.start + s.length }));
      ended.sort((a, b) => a.end - b.end);
      for (const { rank, label, start, end } of ended) {
        sums.span(rank, label, start, end);
        recorder.span(rank, label, start, end);
      }
      const { makespan, ranks } = statistics(recorder.finish());
      expect(sums.makespan).toBe(makespan);
      expect(sums.spans).toBe(ended.length);
      for (const { rank, compute, exposedCommunication, other, idle } of ranks) {
        const own = sums.rank(rank);
        expect(own).toMatchObject({ compute, exposedCommunication, other, idle });
        const mine = ended.filter((s) => s.rank === rank);
        expect(sums.flops(rank)).toBe(7 * mine.filter((s) => s.label === 0).length);
        expect(own.lanes.inter.bytes).toBe(3 * mine.filter((s) => s.label === 1).length);
      }
    }),
  );
});
