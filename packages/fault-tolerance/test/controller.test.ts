import {
  type ControllerOptions,
  type Order,
  type Report,
  RecoveryController,
  decodeRecord,
  encodeRecord,
} from "@trireme/fault-tolerance";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

const options: ControllerOptions = { hosts: [0, 1, 2, 3], standbys: [4, 5], deadline: 10 };

/** A controller, and hosts that do what they are told at once. */
function cluster(change: Partial<ControllerOptions> = {}) {
  const controller = new RecoveryController({ ...options, ...change }, 0);
  const generations = new Map<number, number>();
  const say = (host: number, now: number, more: Partial<Report> = {}): Order => {
    const generation = generations.get(host) ?? 0;
    const order = controller.report({ host, generation, done: 0, ...more }, now);
    if (order.kind !== "evict" && order.generation > generation) {
      generations.set(host, order.generation);
    }
    return order;
  };
  /** Every host but some reports, twice: what it hears the first time it has done the second. */
  const all = (now: number, done = 0, but: readonly number[] = []): void => {
    for (const host of [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5]) {
      if (!but.includes(host)) say(host, now, { done });
    }
  };
  return { controller, say, all };
}

describe("recovery", () => {
  it("evicts on evidence and gives the place to a standby; the others keep their ranks", () => {
    const { controller, say, all } = cluster();
    all(1);
    const order = say(1, 2, { fault: "host", reason: "XID 79" });
    expect(order).toEqual({ kind: "evict", reason: "XID 79" });
    expect(controller.record).toMatchObject({ phase: "halting", generation: 2 });
    all(3, 0, [1]);
    expect(controller.record).toMatchObject({ phase: "training", members: [0, 4, 2, 3] });
    expect(controller.record.standbys).toEqual([5]);
  });

  it("evicts silent hosts and stops below the minimum, for a stated reason", () => {
    const { controller, all } = cluster({ hosts: [0, 1, 2], standbys: [], minimum: 3 });
    all(1);
    all(9, 0, [2]);
    controller.tick(11);
    expect(controller.record.evicted.get(2)).toBe("silent for 10 s");
    all(12, 0, [2]);
    expect(controller.record).toMatchObject({ phase: "stopped", stop: "too-few-hosts" });
    expect(controller.record.reason).toBe("2 hosts are left, but at least 3 must train");
  });

  it("restarts software in place with self-checks, and calls repeated faults a crash loop", () => {
    const { controller, say, all } = cluster({ restarts: 2 });
    for (let attempt = 1; attempt <= 2; attempt++) {
      all(attempt);
      expect(say(2, attempt, { fault: "software" })).toMatchObject({ kind: "halt", check: true });
      expect(controller.record).toMatchObject({ members: [0, 1, 2, 3], attempts: attempt });
    }
    all(3);
    say(2, 3, { fault: "software" });
    expect(controller.record).toMatchObject({ phase: "stopped", stop: "crash-loop" });
    expect(say(0, 4)).toEqual({ kind: "halt", generation: 4 });
  });

  it("forgets software faults once a step is committed", () => {
    const { controller, say, all } = cluster({ restarts: 1 });
    for (let step = 1; step < 5; step++) {
      all(step);
      say(0, step, { fault: "software" });
      all(step);
      all(step, step);
      expect(controller.record).toMatchObject({ phase: "training", committed: step, attempts: 0 });
    }
  });

  it("commits what every member has saved, not what it has only done", () => {
    const { controller, say, all } = cluster();
    all(1);
    for (const host of [0, 1, 2]) say(host, 2, { done: 9, saved: 8 });
    expect(controller.record.committed).toBe(0);
    say(3, 2, { done: 9, saved: 4 });
    expect(controller.record.committed).toBe(4);
    expect(say(3, 3)).toMatchObject({ kind: "train", step: 5 });
  });

  it("merges updates into the next interruption, and makes them due after the window", () => {
    const { controller, say, all } = cluster({ updateWindow: 100 });
    all(1);
    controller.update(7, 1);
    controller.update(8, 2);
    expect(controller.record).toMatchObject({
      phase: "training",
      pending: { version: 8, due: 101 },
    });
    say(0, 3, { fault: "software" });
    all(4);
    expect(say(0, 5)).toMatchObject({ kind: "train", generation: 2, version: 8 });
    controller.update(9, 6);
    for (let now = 10; now <= 105; now += 5) all(now);
    expect(controller.next).toBe(106);
    controller.tick(106);
    expect(controller.record).toMatchObject({ phase: "halting", attempts: 0 });
    controller.update(10, 107, { urgent: true });
    all(108);
    expect(controller.record).toMatchObject({ phase: "training", version: 10 });
  });

  it("goes back to the last version that committed a step when the new one crashes in a loop", () => {
    const { controller, say, all } = cluster({ restarts: 1 });
    controller.update(1, 0, { urgent: true });
    all(1);
    all(1);
    expect(controller.record.version).toBe(1);
    for (const now of [2, 3]) {
      say(0, now, { fault: "software" });
      all(now);
      all(now);
    }
    expect(controller.record).toMatchObject({ phase: "training", version: 0, attempts: 0 });
    expect(say(0, 5)).not.toHaveProperty("version");
  });

  it("rolls back to a save before a loss spike and skips the batches around it", () => {
    const { controller, say, all } = cluster({ spike: { back: 2, margin: 3 } });
    for (let step = 0; step <= 6; step++) all(1 + step, step);
    say(1, 8, { done: 6, fault: "loss" });
    all(9);
    expect(controller.record).toMatchObject({ committed: 4, skip: 5, rollbacks: 1 });
    // Step 5 trains batch 10: 5 to 6 have been trained, 7 to 9 are the margin.
    expect(say(0, 10)).toEqual({ kind: "train", generation: 2, step: 5, skip: 5 });
  });

  it("shrinks to whole replicas, waits for its patience, and regrows when standbys come", () => {
    const { controller, say, all } = cluster({ unit: 2, standbys: [], patience: 5, regrow: 20 });
    all(1);
    say(3, 2, { fault: "host" });
    all(3, 0, [3]);
    expect(controller.record.phase).toBe("halting");
    expect(controller.next).toBe(7);
    controller.tick(7);
    expect(controller.record).toMatchObject({ phase: "training", members: [0, 1], standbys: [2] });
    controller.admit(3, 8);
    for (const now of [8, 16, 24]) all(now);
    expect(controller.next).toBe(27);
    controller.tick(27);
    all(28);
    expect(controller.record.members).toEqual([0, 1, 2, 3]);
    expect(controller.record.evicted.size).toBe(0);
  });

  it("evicts a group that was named, the good with the bad", () => {
    const { controller, all } = cluster();
    all(1);
    controller.suspect([1, 2, 77], "stack traces of pipeline group 3", 2);
    expect([...controller.record.evicted.keys()]).toEqual([1, 2]);
    all(3, 0, [1, 2]);
    expect(controller.record.members).toEqual([0, 4, 5, 3]);
  });

  it("evicts members that do not leave, or never join", () => {
    const { controller, say, all } = cluster({ leave: 30, stall: 50 });
    all(1);
    say(0, 2, { fault: "software" });
    const stuck = { generation: 1 };
    for (const now of [8, 16, 24, 32]) {
      all(now, 0, [3]);
      say(3, now, stuck);
    }
    controller.tick(32);
    expect(controller.record.evicted.get(3)).toBe("did not leave generation 1 within 30 s");
    expect(controller.record.members).toEqual([0, 1, 2, 4]);
    for (const now of [40, 48, 56, 64, 72, 80]) {
      for (const host of [0, 1, 2]) say(host, now);
      say(4, now, { generation: 0 });
    }
    controller.tick(82);
    expect(controller.record.evicted.get(4)).toBe("did not enter generation 2 within 50 s");
  });

  it("holds still while nobody is heard, blames nobody for it after, and ends when it lasts", () => {
    const { controller, say, all } = cluster({ blackout: 40 });
    all(1);
    controller.tick(11);
    expect(controller.next).toBe(41);
    say(0, 30);
    controller.tick(31);
    expect(controller.record).toMatchObject({ phase: "training", generation: 1 });
    say(0, 38);
    controller.tick(40);
    expect(controller.record).toMatchObject({ phase: "halting", members: [0] });
    const deaf = cluster({ blackout: 40 }).controller;
    for (const now of [10, 40]) deaf.tick(now);
    expect(deaf.record).toMatchObject({ stop: "deaf", reason: "no host has been heard for 40 s" });
  });

  it("needs a member that has left, or a lease that is over, to start without the others", () => {
    for (const lease of [undefined, 25]) {
      const { controller, say } = cluster(lease === undefined ? {} : { lease });
      for (const now of [1, 9]) for (const host of [4, 5]) say(host, now);
      controller.tick(10);
      if (lease === undefined) {
        expect(controller.record).toMatchObject({ phase: "stopped", stop: "unfenced" });
        expect(controller.record.reason).toBe("no host of generation 1 is left to fence it");
        continue;
      }
      expect(controller.record).toMatchObject({ phase: "halting", members: [] });
      expect(controller.next).toBe(35);
      for (const now of [18, 26, 34]) for (const host of [4, 5]) say(host, now);
      expect(controller.record.phase).toBe("halting");
      controller.tick(35);
      expect(controller.record).toMatchObject({ phase: "training", members: [4, 5] });
    }
  });

  it("ends where a host knows a later generation than its record", () => {
    const { say } = cluster();
    expect(() => say(0, 1, { generation: 2 })).toThrow(
      "host 0 is in generation 2, but the record has come to 1",
    );
  });

  it("refuses options that contradict themselves, with the nearest that fit", () => {
    const made = (change: Partial<ControllerOptions>) => (): unknown =>
      new RecoveryController({ ...options, ...change }, 0);
    expect(made({ hosts: [] })).toThrow("0 hosts, but at least 1 must train");
    expect(made({ deadline: Number.NaN })).toThrow("deadline = NaN s must be above 0");
    expect(made({ standbys: [3] })).toThrow("name a host twice");
    expect(made({ unit: 3 })).toThrow(
      "4 hosts are no whole number of replicas of 3; the nearest is 3",
    );
    expect(made({ lease: 0 })).toThrow("lease = 0 s must be above 0; leave it out");
    expect(made({ spike: { back: -1 } })).toThrow("spike.back = -1 must be a whole number");
  });
});

describe("a report in the name of many", () => {
  it("decides as a report of each of them would", () => {
    const action = fc.record({
      kind: fc.constantFrom("all", "one", "fault", "tick"),
      host: fc.nat(5),
      done: fc.nat(9),
      wait: fc.nat(6),
    });
    fc.assert(
      fc.property(fc.array(action, { maxLength: 60 }), (actions) => {
        const one = new RecoveryController({ ...options, restarts: 50, leave: 30 }, 0);
        const many = new RecoveryController({ ...options, restarts: 50, leave: 30 }, 0);
        let now = 0;
        for (const { kind, host, done: most, wait } of actions) {
          now += wait;
          const { generation, phase } = one.record;
          if (phase === "stopped") break;
          // Nobody has done a step of a generation that is still to begin.
          const done = phase === "halting" ? 0 : most;
          const except = [...one.record.evicted.keys(), host];
          if (kind === "all") {
            // Standbys first: members that have left do not wait for them.
            for (const each of [4, 5, 0, 1, 2, 3]) {
              if (!except.includes(each)) one.report({ host: each, generation, done }, now);
            }
            many.reportCohort({ generation, done, except }, now);
          } else {
            const fault = kind === "fault" ? { fault: "software" as const } : {};
            for (const each of [one, many]) {
              if (kind === "tick") each.tick(now);
              else each.report({ host, generation, done, ...fault }, now);
            }
          }
          // One after another they commit steps in between, which can be restored too.
          expect({ ...many.record, saves: [] }).toEqual({ ...one.record, saves: [] });
          expect(many.next).toBe(one.next);
        }
      }),
    );
  });
});

describe("the record", () => {
  it("comes back from its text as it was, and says what is wrong with a damaged one", () => {
    const { controller, say, all } = cluster({ spike: { back: 1, margin: 1 } });
    for (let step = 0; step < 4; step++) all(1 + step, step);
    controller.update(3, 4);
    say(0, 5, { done: 3, fault: "loss" });
    say(1, 5, { fault: "host" });
    const text = encodeRecord(controller.record);
    expect(decodeRecord(text)).toEqual(controller.record);
    const again = new RecoveryController(options, 6, decodeRecord(text));
    expect(again.record).toEqual(controller.record);
    expect(() => decodeRecord("{")).toThrow("is no JSON");
    expect(() => decodeRecord("{}")).toThrow("format 1 was expected");
    expect(() => decodeRecord('{"format":1}')).toThrow("generation of a controller record is");
  });
});
