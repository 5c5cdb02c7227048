import { expect, test } from "vitest";
import { median } from "@trireme/core";

test("the median is the middle value, or the mean of the two in the middle, whatever their order", () => {
  const values = [10, 9, 2];
  expect(median(values)).toBe(9);
  expect(values).toEqual([10, 9, 2]);
  expect(median(Float32Array.of(4, 1, 3, 2))).toBe(2.5);
  expect(median([1e308, 1.5e308])).toBe(1.25e308);
  expect(median([5, 1, 9])).toBe(5);
  expect(median([5, 1, 9, 6])).toBe(5.5);
  expect(median([7])).toBe(7);
  expect(median([])).toBe(0);
});
