import { test } from "vitest";
import { checkRandomPairs } from "../random-pairs.ts";

test("200 random pairs of layouts: saved by one and read by the other, bit for bit as sharded directly", () => {
  checkRandomPairs(200, 11);
});
