import {
  RuleBroken,
  drawScript,
  playScript,
  simulateHistory,
} from "@trireme/fault-tolerance/simulation";
import { describe, expect, it } from "vitest";

import { mutants } from "../mutants.ts";

/** The first seed whose history breaks the rule. */
function firstBroken({ controller, breaks }: (typeof mutants)[number]): RuleBroken | undefined {
  for (let seed = 0; seed < 1000; seed++) {
    try {
      simulateHistory(seed, { controller });
    } catch (error) {
      if (!(error instanceof RuleBroken)) throw error;
      if (error.rule === breaks) return error;
    }
  }
  return undefined;
}

describe("simulated histories", () => {
  it("keep the rules when the controller dies just before or after any write of its record", () => {
    let runs = 0;
    for (let seed = 0; seed < 15; seed++) {
      const script = { ...drawScript(seed), deadlyWrites: 0 };
      const { writes } = playScript(script);
      for (let write = 0; write < writes; write++) {
        for (const when of ["before", "after"] as const) {
          playScript(script, { deadlyWrite: { write, when } });
          runs++;
        }
      }
    }
    expect(runs).toBeGreaterThan(250);
  });
});

describe("the rules", () => {
  it.each(mutants)("catch a controller that $does ($breaks)", (mutant) => {
    const { controller } = mutant;
    const broken = firstBroken(mutant);
    expect(broken).toBeDefined();
    // The seed that the message names breaks the same rule in the same way, every time.
    const again = (): void => void simulateHistory(broken!.seed, { controller });
    expect(again).toThrow(
      expect.objectContaining({ message: broken!.message, trace: broken!.trace }),
    );
  });
});

it("histories are long and hard enough: every kind of mishap and of end occurs", () => {
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
