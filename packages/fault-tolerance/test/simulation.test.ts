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

  it("are long and hard enough: every kind of mishap and of end occurs", () => {
    const kinds = new Set<string>();
    const ends = new Map<string, number>();
    const seen = { rollbacks: 0, updates: 0, seats: 0, evicted: 0, shrunk: 0 };
    for (let seed = 0; seed < 200; seed++) {
      const { script, record, trace } = simulateHistory(seed);
      for (const { mishap } of script.mishaps) kinds.add(mishap.kind);
      const end = record.stop ?? record.phase;
      ends.set(end, (ends.get(end) ?? 0) + 1);
      if (record.rollbacks > 0) seen.rollbacks++;
      if (record.version > 0) seen.updates++;
      if (trace.some((entry) => entry.seat > 0)) seen.seats++;
      if (record.evicted.size > 0) seen.evicted++;
      if (record.members.length < script.options.hosts.length) seen.shrunk++;
    }
    expect(kinds.size).toBe(13);
    expect(ends.get("training")).toBeGreaterThan(140);
    for (const end of ["crash-loop", "too-few-hosts", "unfenced", "deaf"]) {
      expect(ends.get(end) ?? 0).toBeGreaterThan(0);
    }
    for (const count of Object.values(seen)) expect(count).toBeGreaterThan(5);
  });
});
