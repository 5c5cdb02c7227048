import { replayTrace, simulateHistory } from "@trireme/fault-tolerance/simulation";
import { describe, expect, it } from "vitest";

describe("simulated histories", () => {
  it("replay exactly: the same inputs, orders, records and end", () => {
    for (const seed of [0, 7, 1234]) expect(simulateHistory(seed)).toEqual(simulateHistory(seed));
  });

  it("are told again from their trace alone, with the same decisions", () => {
    for (let seed = 0; seed < 40; seed++) {
      const { trace, script } = simulateHistory(seed);
      expect(replayTrace(trace, script.options)).toEqual({ same: true, entries: trace.length });
    }
  });

  it("show where another controller decides otherwise", () => {
    const { trace, script } = simulateHistory(7);
    const other = replayTrace(trace, { ...script.options, deadline: 3 });
    expect(other).toMatchObject({ same: false, entry: { input: { kind: "tick" } } });
  });
});
