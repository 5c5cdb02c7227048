import { expect, test } from "vitest";
import { nearestDivisor, nearestName } from "@trireme/core";

const keys = ["model", "cluster", "plan", "data"];

test("a slip of the pen finds its word", () => {
  expect(nearestName("modle", keys)).toBe("model");
  expect(nearestName("Clusters", keys)).toBe("cluster");
});

test("a stranger finds none, and of equals the first is taken", () => {
  expect(nearestName("checkpoint", keys)).toBeUndefined();
  expect(nearestName("ab", ["aa", "bb"])).toBe("aa");
});

test("the nearest divisor is one, and the smaller of equals", () => {
  expect(nearestDivisor(12, 5)).toBe(4);
  expect(nearestDivisor(12, 100)).toBe(12);
  expect(nearestDivisor(8, 3)).toBe(2);
  expect(nearestDivisor(7, 4)).toBe(1);
  expect(nearestDivisor(2.5, 2)).toBe(1);
  expect(nearestDivisor(0, 2)).toBe(1);
});
