import { test } from "vitest";
import { expectAccumulated } from "./bf16-gradients.ts";

// Other stages of ZeRO, and every other axis, are in slow/bf16-gradients.source.test.ts.
test("gradients in BF16 are rounded once by each microbatch, and once by the sum over replicas", () =>
  expectAccumulated({ dp: 2, zero: 2, microbatch: 2 }));
