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
