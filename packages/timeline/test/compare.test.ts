import fc from "fast-check";
import { expect, test } from "vitest";
import { TimelineBuilder, compare, spanKinds } from "@trireme/timeline";
import { pipeline } from "./pipeline.ts";

test("a timeline does not differ from itself", () => {
  const { difference, causes } = compare(pipeline(), pipeline());
  expect([difference, ...Object.values(causes)].every((x) => x === 0)).toBe(true);
});

test("slower arithmetic shows as compute and the bubble that it stretches", () => {
  const { difference, causes } = compare(pipeline(1), pipeline(1.1));
  expect(difference).toBeCloseTo(0.9, 12);
  expect(causes.compute).toBeCloseTo(0.6, 12);
  expect(causes.bubble + causes.startDelay).toBeCloseTo(0.3, 12);
});

test("the causes add up to the difference of any two timelines", () => {
  const timeline = fc
    .array(
      fc.record({
        rank: fc.integer({ min: 0, max: 2 }),
        kind: fc.constantFrom(...spanKinds),
        start: fc.double({ min: 0, max: 9, noNaN: true }),
        length: fc.double({ min: 0, max: 9, noNaN: true }),
      }),
      { minLength: 1 },
    )
    .map((all) => {
      const builder = new TimelineBuilder();
      for (const { rank, kind, start, length } of all) {
        builder.add({ rank, kind, lane: "compute", action: "", start, end: start + length });
      }
      return builder.finish();
    });
  fc.assert(
    fc.property(timeline, timeline, (a, b) => {
      const { difference, causes } = compare(a, b);
      const sum = Object.values(causes).reduce((x: number, y: number) => x + y, 0);
      expect(sum).toBeCloseTo(difference, 9);
    }),
  );
});
