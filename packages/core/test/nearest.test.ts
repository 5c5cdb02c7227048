import { expect, test } from "vitest";
import { nearestName } from "@trireme/core";

const keys = ["model", "cluster", "plan", "data"];

test("a slip of the pen finds its word", () => {
  expect(nearestName("modle", keys)).toBe("model");
  expect(nearestName("Clusters", keys)).toBe("cluster");
});

test("a stranger finds none, and of equals the first is taken", () => {
  expect(nearestName("checkpoint", keys)).toBeUndefined();
  expect(nearestName("ab", ["aa", "bb"])).toBe("aa");
});
