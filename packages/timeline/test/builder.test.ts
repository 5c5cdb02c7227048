import fc from "fast-check";
import { expect, test } from "vitest";
import { type SpanInput, TimelineBuilder, lanes, span, spanKinds, spans } from "@trireme/timeline";

const time = fc.double({ min: -1e6, max: 1e6, noNaN: true });
const input: fc.Arbitrary<SpanInput> = fc
  .record({
    rank: fc.integer({ min: 0, max: 5 }),
    lane: fc.constantFrom(...lanes),
    kind: fc.constantFrom(...spanKinds),
    action: fc.string({ maxLength: 3 }),
    times: fc.tuple(time, time),
    step: fc.integer({ min: -1, max: 2 ** 31 - 1 }),
    bytes: fc.double({ min: 0, max: 1e18, noNaN: true }),
  })
  .map(({ times, ...rest }) =>
    Object.assign(rest, { start: Math.min(...times), end: Math.max(...times) }),
  );

test("spans are read back as they were added, whatever the capacity", () => {
  fc.assert(
    fc.property(fc.array(input), fc.integer({ min: 0, max: 9 }), (inputs, capacity) => {
      const builder = new TimelineBuilder({ capacity });
      inputs.forEach((each, i) => expect(builder.add(each)).toBe(i));
      const t = builder.finish();
      expect(t.length).toBe(inputs.length);
      const read = [...spans(t)];
      expect(read).toEqual(
        inputs.map((each, index) => ({
          index,
          stage: -1,
          microbatch: -1,
          flops: 0,
          parents: [],
          ...each,
        })),
      );
      expect(t.ranks).toBe(Math.max(0, ...inputs.map((each) => each.rank + 1)));
      expect(new Set(t.actions).size).toBe(t.actions.length);
    }),
  );
});

const one: SpanInput = {
  rank: 0,
  lane: "compute",
  kind: "forward",
  action: "0F0",
  start: 0,
  end: 1,
};

test("parents are kept once each, in ascending order, told at once or later", () => {
  const builder = new TimelineBuilder();
  for (let i = 0; i < 40; i++) builder.add(one);
  const last = builder.add({ ...one, parents: [7, 3, 7] });
  builder.link(2, 1);
  for (let i = 39; i >= 0; i--) builder.link(last, i);
  const t = builder.finish();
  expect(span(t, last).parents).toEqual(Array.from({ length: 40 }, (_, i) => i));
  expect(span(t, 2).parents).toEqual([1]);
  expect(span(t, 3).parents).toEqual([]);
});

test("a builder goes on after finish without touching what it gave", () => {
  const builder = new TimelineBuilder({ ranks: 4 });
  builder.add(one);
  const before = builder.finish();
  builder.add({ ...one, action: "0F1" });
  expect(before.length).toBe(1);
  expect(before.actions).toEqual(["0F0"]);
  expect(builder.finish().length).toBe(2);
  expect(before.ranks).toBe(4);
});

test("spans that cannot be are refused with the offending values", () => {
  const builder = new TimelineBuilder();
  const bad = (change: object): (() => void) => {
    return () => builder.add({ ...one, ...change });
  };
  expect(bad({ end: -1 })).toThrow("from 0 s to -1 s");
  expect(bad({ end: Number.NaN })).toThrow("NaN");
  expect(bad({ end: Infinity })).toThrow("finite");
  expect(bad({ rank: -1 })).toThrow("rank -1");
  expect(bad({ rank: 2 ** 31 })).toThrow("rank 2147483648");
  expect(bad({ stage: 0.5 })).toThrow("stage 0.5");
  expect(bad({ bytes: -3 })).toThrow("-3 bytes");
  expect(bad({ flops: Number.NaN })).toThrow("NaN FLOP");
  expect(bad({ kind: "forwards" })).toThrow('did you mean "forward"?');
  expect(bad({ lane: "nvlink" })).toThrow("one of compute, intra, inter, copy, host");
  expect(bad({ parents: [0] })).toThrow("cannot wait for itself");
  expect(() => builder.link(0, 9)).toThrow("only 1 spans");
  expect(() => builder.addFast(0, 99, 0, 0, 0, 1)).toThrow("laneCode");
  expect(() => new TimelineBuilder({ ranks: -1 })).toThrow("-1 ranks");
  expect(() => span(builder.finish(), 1)).toThrow("span 1 of a timeline of 1");
});

test("a capacity that is no count is refused: columns would have no room, and never grow", () => {
  for (const capacity of [NaN, -1, 1.5, Infinity]) {
    expect(() => new TimelineBuilder({ capacity })).toThrow(
      `capacity ${capacity}: give an integer in 0..2^31`,
    );
  }
  expect(new TimelineBuilder({ capacity: 0 }).finish().length).toBe(0);
});
