/** Takes seconds: the largest point of torch's grid has 64 ranks with 4 stages and 128 microbatches. */
import { describe, expect, test } from "vitest";
import { scheduleNames } from "@trireme/schedulers";
import { checkGrid, torchGrid } from "../torch-grid.ts";

describe.each(scheduleNames)("%s on torch's grid", (name) => {
  test("is valid, or refused with the constraint, also with 32 and 64 ranks", () => {
    expect(checkGrid(name, torchGrid)).toBeGreaterThan(5);
  });
});
