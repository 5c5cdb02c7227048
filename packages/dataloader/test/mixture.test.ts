import fc from "fast-check";
import { expect, test } from "vitest";
import { temperedWeights, weightsAt } from "@trireme/dataloader";

test("a temperature moves shares from natural to equal", () => {
  expect(temperedWeights([1, 3], 1)).toEqual([0.25, 0.75]);
  expect(temperedWeights([1, 100], 2)[0]).toBeCloseTo(1 / 11, 12);
  expect(temperedWeights([1, 1e300, 0], Infinity)).toEqual([0.5, 0.5, 0]);
  fc.assert(
    fc.property(
      fc.array(fc.nat(1e9), { minLength: 1 }),
      fc.double({ min: 0.1, max: 100, noNaN: true }),
      (sizes, t) => {
        fc.pre(sizes.some((size) => size > 0));
        const sum = temperedWeights(sizes, t).reduce((a, b) => a + b, 0);
        // A sum of up to ten rounded shares.
        expect(sum).toBeCloseTo(1, 12);
      },
    ),
  );
  expect(() => temperedWeights([1], 0)).toThrow("temperature 0 is not positive");
  expect(() => temperedWeights([0, 0], 1)).toThrow("one positive");
});

test("a curriculum is linear between its points, flat outside, and may jump", () => {
  const points = [
    { step: 10, weights: [1, 0] },
    { step: 20, weights: [1, 1] },
    { step: 30, weights: [2, 2] },
    { step: 30, weights: [0, 7] },
  ];
  expect(weightsAt(points, 0)).toEqual([1, 0]);
  expect(weightsAt(points, 15)).toEqual([0.75, 0.25]);
  expect(weightsAt(points, 29)).toEqual([0.5, 0.5]);
  expect(weightsAt(points, 30)).toEqual([0, 1]);
  expect(weightsAt(points, 1e9)).toEqual([0, 1]);
});

test("a curriculum out of order, of unequal length or without weight is refused", () => {
  expect(() => weightsAt([], 0)).toThrow("without points");
  expect(() =>
    weightsAt(
      [
        { step: 5, weights: [1] },
        { step: 4, weights: [1] },
      ],
      0,
    ),
  ).toThrow("step 4 after step 5");
  expect(() =>
    weightsAt(
      [
        { step: 0, weights: [1] },
        { step: 4, weights: [1, 1] },
      ],
      0,
    ),
  ).toThrow("2 weights at step 4, but 1 at step 0");
  expect(() => weightsAt([{ step: 0, weights: [0] }], 0)).toThrow("their sum positive");
});
