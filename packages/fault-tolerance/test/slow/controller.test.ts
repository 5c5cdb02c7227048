import { expect, it } from "vitest";

import { sweep } from "../history.ts";

it("keeps its rules over 10,000 random histories", { timeout: 60_000 }, () => {
  const counts = sweep(0, 10_000);
  expect(counts.training + counts.stopped).toBe(10_000);
  expect(counts.stopped).toBeGreaterThan(0);
  expect(counts.generations).toBeGreaterThan(15_000); // the faults did happen
});
