import { days } from "@trireme/core";
import { type CorruptionFinding, corruptionAction } from "@trireme/fault-tolerance";
import { describe, expect, it } from "vitest";

const finding = (over: Partial<CorruptionFinding> = {}): CorruptionFinding => ({
  time: 0,
  step: 10,
  detector: "checksum",
  committed: false,
  ...over,
});

describe("the corruption policy", () => {
  it("recomputes a step before it is committed, and skips what stays wrong", () => {
    expect(corruptionAction([finding()])).toEqual({ kind: "recompute", step: 10 });
    expect(corruptionAction([finding(), finding()])).toEqual({ kind: "skip", step: 10 });
    expect(corruptionAction([finding({ step: 9 }), finding()])).toMatchObject({
      kind: "recompute",
    });
    expect(corruptionAction([finding()], { recomputations: 0 })).toMatchObject({ kind: "skip" });
  });

  it("rolls back what is already in the weights", () => {
    expect(corruptionAction([finding({ committed: true, detector: "loss-spike" })])).toEqual({
      kind: "roll-back",
      before: 10,
    });
  });

  it("cordons a device caught twice within the window, or once by diagnostics", () => {
    const first = finding({ device: 3, step: 4 });
    const second = finding({ device: 3, time: days(6) });
    expect(corruptionAction([first])).toMatchObject({ kind: "recompute" });
    expect(corruptionAction([first, second])).toEqual({
      kind: "cordon",
      device: 3,
      next: "recompute",
      step: 10,
    });
    expect(corruptionAction([first, { ...second, time: days(8) }])).toMatchObject({
      kind: "recompute",
    });
    expect(corruptionAction([first, { ...second, device: 4 }])).toMatchObject({
      kind: "recompute",
    });
    const proof = finding({ device: 5, detector: "diagnostics", committed: true });
    expect(corruptionAction([proof])).toMatchObject({ kind: "cordon", next: "roll-back" });
  });

  it("refuses nothing to act on and policies out of range", () => {
    expect(() => corruptionAction([])).toThrow("no finding");
    expect(() => corruptionAction([finding()], { strikes: 0 })).toThrow("0 strikes");
  });
});
