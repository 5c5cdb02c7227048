/**
 * Vectors of torchft's own tests (meta-pytorch/torchft at 7eb7087, src/lighthouse.rs and
 * src/manager.rs, BSD-3-Clause): inputs and expected outcomes, not code.
 */
import {
  type Participant,
  type QuorumDecision,
  type QuorumOptions,
  assignRecovery,
  decideQuorum,
  shouldCommit,
} from "@trireme/fault-tolerance";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

const hour = 3600;

const at = (replica: string, more: Partial<Participant> = {}): Participant => ({
  replica,
  step: 1,
  joined: 0,
  ...more,
});

function decide(
  participants: readonly Participant[],
  heartbeats: Readonly<Record<string, number>>,
  more: Partial<QuorumOptions> = {},
): QuorumDecision {
  const beats = new Map(Object.entries(heartbeats));
  const rest = { now: 0, minReplicas: 1, joinTimeout: hour };
  return decideQuorum({ ...rest, participants, heartbeats: beats, ...more });
}

const names = (decision: QuorumDecision): readonly string[] | string =>
  decision.ok ? decision.quorum.members.map((each) => each.replica) : decision.reason;

describe("the quorum of torchft's lighthouse", () => {
  it("waits for a healthy replica that does not ask, up to the join timeout", () => {
    expect(names(decide([], {}))).toBe("need at least 1 replicas, have 0");
    const two = [at("a"), at("b")];
    expect(names(decide(two, { a: 0, b: 0 }))).toEqual(["a", "b"]);
    const three = { a: 0, b: 0, c: 0 };
    expect(names(decide(two, three))).toBe("waiting for 1 healthy workers to join");
    expect(names(decide([at("a", { joined: -10 * hour }), at("b")], three))).toEqual(["a", "b"]);
  });

  it("leaves out replicas whose heartbeat is 5 s old", () => {
    const more = { joinTimeout: 0 };
    expect(names(decide([at("a")], { a: 0 }, more))).toEqual(["a"]);
    expect(names(decide([at("a")], { a: -5 }, more))).toBe("need at least 1 replicas, have 0");
    expect(names(decide([at("a"), at("b")], { a: -10, b: 0 }, more))).toEqual(["b"]);
  });

  it("is fast when all of the previous members ask again, and may grow", () => {
    const heartbeats = { a: 0, b: 0 };
    expect(names(decide([at("a")], heartbeats))).toBe("need at least half of 2 healthy workers");
    const previous = { id: 1, members: [at("a")] };
    expect(decide([at("a")], heartbeats, { previous })).toMatchObject({ ok: true, fast: true });
    const grown = decide([at("a"), at("b")], heartbeats, { previous });
    expect(names(grown)).toEqual(["a", "b"]);
    expect(grown).toMatchObject({ fast: true, quorum: { id: 2 } });
  });

  it("keeps only previous members where one asks to shrink only", () => {
    const previous = { id: 1, members: [at("a"), at("b")] };
    const asked = [at("a", { shrinkOnly: true }), at("c", { shrinkOnly: true })];
    expect(names(decide(asked, { a: 0, c: 0 }, { previous }))).toEqual(["a"]);
  });

  it("refuses one of two that are heartbeating: no split brain", () => {
    expect(names(decide([at("a")], { a: 0 }))).toEqual(["a"]);
    expect(names(decide([at("a")], { a: 0, b: 0 }))).toBe(
      "need at least half of 2 healthy workers",
    );
  });

  it("gives a new id when members change or a commit failed, not when a step passes", () => {
    const previous = { id: 7, members: [at("a"), at("b")] };
    const heartbeats = { a: 0, b: 0 };
    const again = decide([at("a", { step: 1000 }), at("b")], heartbeats, { previous });
    expect(again).toMatchObject({ quorum: { id: 7 }, commitFailures: 0 });
    const failed = [at("a"), at("b", { commitFailures: 2 })];
    expect(decide(failed, heartbeats, { previous })).toMatchObject({
      quorum: { id: 8 },
      commitFailures: 2,
    });
  });

  it("never lets two disjoint sets of replicas that see the same heartbeats form a first quorum", () => {
    const room = fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 1 });
    fc.assert(
      fc.property(room, fc.uniqueArray(fc.integer({ min: 0, max: 9 })), (heard, split) => {
        const heartbeats = Object.fromEntries([...heard, ...split].map((each) => [each, 0]));
        const all = Object.keys(heartbeats);
        const first = all.filter((each) => split.includes(Number(each)));
        const second = all.filter((each) => !split.includes(Number(each)));
        const formed = [first, second].filter((some) => {
          const asking = some.map((each) => at(each, { joined: -2 * hour }));
          return decide(asking, heartbeats).ok;
        });
        expect(formed.length).toBeLessThan(2);
      }),
    );
  });

  it("refuses a join timeout in which no replica can recover", () => {
    expect(() => decide([at("a")], { a: 0 }, { joinTimeout: 60, recovery: 90 })).toThrow(
      "joinTimeout = 60 s, but a replica takes 90 s to recover",
    );
    // What it prevents: the others close the quorum without the replica that is on its way.
    const two = [at("a"), at("b")];
    const late = { now: 60, joinTimeout: 60 };
    expect(names(decide(two, { a: 60, b: 60, c: 60 }, late))).toEqual(["a", "b"]);
    const patient = { now: 60, joinTimeout: 120, recovery: 90 };
    expect(decide(two, { a: 60, b: 60, c: 60 }, patient).ok).toBe(false);
  });
});

describe("torchft's recovery assignment", () => {
  it("starts all from one primary at step 0, another for each local rank", () => {
    expect(assignRecovery([0, 0])).toEqual([
      { healFrom: undefined, sendTo: [1] },
      { healFrom: 0, sendTo: [] },
    ]);
    expect(assignRecovery([0, 0], { groupRank: 1 })).toEqual([
      { healFrom: 1, sendTo: [] },
      { healFrom: undefined, sendTo: [0] },
    ]);
  });

  it("deals those behind to those ahead in turn, shifted by the local rank", () => {
    expect(assignRecovery([0, 1, 0, 1, 0])).toEqual([
      { healFrom: 1, sendTo: [] },
      { healFrom: undefined, sendTo: [0, 4] },
      { healFrom: 3, sendTo: [] },
      { healFrom: undefined, sendTo: [2] },
      { healFrom: 1, sendTo: [] },
    ]);
    expect(assignRecovery([0, 1, 0, 1, 0], { groupRank: 1 })[1]).toEqual({
      healFrom: undefined,
      sendTo: [2],
    });
  });

  it("heals nobody at step 0 without the first synchronisation, and those behind later", () => {
    const none = assignRecovery([0, 0], { initSync: false });
    expect(none.map((each) => each.healFrom)).toEqual([undefined, undefined]);
    expect(assignRecovery([1, 0], { initSync: false })[1]!.healFrom).toBe(0);
  });

  it("never has one source serve two more than another (no hot spot)", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 1, maxLength: 40 }),
        fc.nat(7),
        (steps, groupRank) => {
          const greatest = Math.max(...steps);
          const plan = assignRecovery(steps, { groupRank });
          const loads = plan
            .filter((_, i) => steps[i] === greatest)
            .map((each) => each.sendTo.length);
          expect(Math.max(...loads) - Math.min(...loads)).toBeLessThanOrEqual(1);
          for (const [i, each] of plan.entries()) {
            expect(each.healFrom === undefined).toBe(steps[i] === greatest);
          }
        },
      ),
    );
  });

  it("commits a step only where every local rank votes for it", () => {
    expect([shouldCommit([true, true]), shouldCommit([true, false])]).toEqual([true, false]);
  });
});
