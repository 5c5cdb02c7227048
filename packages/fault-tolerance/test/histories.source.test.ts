import { simulateHistory } from "@trireme/fault-tolerance/simulation";
import { expect, it } from "vitest";

it("10,000 random histories of controllers and agents keep the rules", { timeout: 240_000 }, () => {
  const ends = new Map<string, number>();
  let generations = 0;
  for (let seed = 0; seed < 10_000; seed++) {
    const { record } = simulateHistory(seed);
    const end = record.stop ?? record.phase;
    ends.set(end, (ends.get(end) ?? 0) + 1);
    generations += record.generation;
  }
  // It must not pass by stopping, nor because nothing happens.
  expect(ends.get("training")).toBeGreaterThan(8000);
  expect(generations).toBeGreaterThan(30_000);
});
