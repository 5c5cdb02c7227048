import { planRollback } from "@trireme/fault-tolerance";
import { describe, expect, it } from "vitest";

describe("a rollback", () => {
  const policy = { reattempts: 1, back: 10, margin: 5, limit: 2 };
  const saves = [0, 100, 200];

  it("tries the same batches again before it skips them, then gives up", () => {
    const first = planRollback({ step: 205, skip: 0, saves, last: undefined, policy });
    expect(first).toEqual({ ok: true, to: 100, skip: 0, spike: { batch: 205, count: 1 } });
    const second = planRollback({
      step: 205,
      skip: 0,
      saves,
      last: { batch: 205, count: 1 },
      policy,
    });
    expect(second).toEqual({ ok: true, to: 100, skip: 110, spike: { batch: 205, count: 2 } });
    const third = planRollback({
      step: 104,
      skip: 110,
      saves,
      last: { batch: 205, count: 2 },
      policy,
    });
    expect(third).toMatchObject({ ok: false, stop: "diverged" });
  });

  it("takes the oldest save where none is old enough, and says where there is none", () => {
    const near = planRollback({ step: 205, skip: 0, saves: [200], last: undefined, policy });
    expect(near).toMatchObject({ ok: true, to: 200 });
    const none = planRollback({ step: 200, skip: 0, saves: [200], last: undefined, policy });
    expect(none).toMatchObject({
      ok: false,
      stop: "no-checkpoint",
      reason: "the loss spiked at step 200, but the oldest save kept is of step 200",
    });
    const empty = planRollback({ step: 200, skip: 0, saves: [], last: undefined, policy });
    expect(empty).toMatchObject({
      reason: "the loss spiked at step 200, but no save is kept",
    });
  });

  it("never takes the save of the spike's own step, however little is distrusted", () => {
    for (const back of [0, 1]) {
      const input = { step: 200, skip: 0, saves, last: undefined, policy: { ...policy, back } };
      expect(planRollback(input)).toMatchObject({ ok: true, to: 100 });
      expect(planRollback({ ...input, step: 201 })).toMatchObject({ ok: true, to: 200 });
    }
  });
});
