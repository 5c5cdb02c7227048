/** The points up to 16 ranks; those with 32 and 64 are in slow/torch-grid.test.ts. */
import { describe, expect, test } from "vitest";
import { scheduleNames } from "@trireme/schedulers";
import { checkGrid, torchGrid } from "./torch-grid.ts";

describe.each(scheduleNames)("%s on torch's grid", (name) => {
  test("is valid at every point, or refused with the constraint", () => {
    const points = torchGrid.filter(([, , ranks]) => ranks <= 16);
    expect(points.length).toBe(torchGrid.length - 2);
    // Every schedule has points on the grid.
    expect(checkGrid(name, points)).toBeGreaterThan(5);
  });
});
