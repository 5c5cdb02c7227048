import { test } from "vitest";
import { expectReducedInBf16 } from "./reduced-gradients.ts";

test("gradients that travel in BF16 are half the bytes, and are summed in float32", () =>
  expectReducedInBf16({ dp: 2, zero: 1 }, 8));
