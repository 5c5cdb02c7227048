import { assignRecovery, decideQuorum, standbyPool } from "@trireme/fault-tolerance";
import { describe, expect, it } from "vitest";

describe("published figures", () => {
  it("hold 2, 2, 3 and 4 standbys for 128, 256, 512 and 1,024 machines (ByteRobust, table 5)", () => {
    for (const probability of [0.001_17, 0.0012, 0.001_25]) {
      const pools = [128, 256, 512, 1024].map((hosts) => standbyPool({ hosts, probability }));
      expect(pools).toEqual([2, 2, 3, 4]);
    }
    expect(standbyPool({ hosts: 0, probability: 0.5 })).toBe(0);
    expect(standbyPool({ hosts: 7, probability: 1 })).toBe(7);
  });
});

describe("torchft", () => {
  it("assigns recovery as its own tests do", () => {
    expect(assignRecovery([0, 0])).toEqual([
      { healFrom: undefined, sendTo: [1] },
      { healFrom: 0, sendTo: [] },
    ]);
    expect(assignRecovery([0, 0], { groupRank: 1 })[0]).toEqual({ healFrom: 1, sendTo: [] });
    const mixed = assignRecovery([0, 1, 0, 1, 0]);
    expect(mixed.map((each) => each.sendTo)).toEqual([[], [0, 4], [], [2], []]);
    expect(mixed[0]!.healFrom).toBe(1);
    expect(assignRecovery([0, 1, 0, 1, 0], { groupRank: 1 })[1]!.sendTo).toEqual([2]);
    const none = assignRecovery([0, 0], { initSync: false });
    expect(none.every((each) => each.healFrom === undefined)).toBe(true);
  });

  it("refuses a quorum of half of the heartbeating replicas, and takes one of all", () => {
    const one = { replica: "a", step: 1, joined: 0 };
    const heartbeats = new Map([
      ["a", 0],
      ["b", 0],
    ]);
    const options = { now: 0, heartbeats, minReplicas: 1, joinTimeout: 60 };
    expect(decideQuorum({ ...options, participants: [one] })).toEqual({
      ok: false,
      reason: "need at least half of 2 healthy workers",
    });
    const both = decideQuorum({ ...options, participants: [one, { ...one, replica: "b" }] });
    expect(both).toMatchObject({ ok: true, fast: false, quorum: { id: 1 } });
  });
});
