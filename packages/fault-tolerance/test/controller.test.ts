import { RecoveryController } from "@trireme/fault-tolerance";
import { describe, expect, it } from "vitest";

describe("recovery controller", () => {
  it("evicts a host on evidence, hires a standby, and stops with a reason below the minimum", () => {
    const c = new RecoveryController({ hosts: [0, 1], standbys: [2], deadline: 10, minimum: 2 }, 0);
    c.report({ host: 2, generation: 0, done: 0 }, 1);
    const bad = c.report({ host: 0, generation: 1, done: 0, fault: "host" }, 1);
    expect(bad.kind).toBe("evict");
    expect(c.report({ host: 1, generation: 1, done: 0 }, 2)).toEqual({
      kind: "halt",
      generation: 2,
    });
    expect(c.report({ host: 1, generation: 2, done: 0 }, 3)).toMatchObject({
      kind: "train",
      step: 1,
    });
    expect(c.record.members).toEqual([2, 1]); // the standby takes the rank of the evicted host
    c.tick(11.5);
    expect(c.record.phase).toBe("halting");
    c.report({ host: 1, generation: 3, done: 0 }, 12);
    expect(c.record.reason).toBe("1 hosts are left, but at least 2 must train");
  });

  it("stops rather than start on standbys alone: nobody left could fence the old generation", () => {
    const c = new RecoveryController({ hosts: [0, 1], standbys: [2, 3], deadline: 10 }, 0);
    for (const host of [2, 3]) c.report({ host, generation: 0, done: 0 }, 9);
    c.tick(10);
    expect(c.record).toMatchObject({ phase: "stopped", members: [] });
    expect(c.record.reason).toBe("no host of generation 1 is left to fence it");
    expect(c.report({ host: 2, generation: 0, done: 0 }, 11).kind).toBe("halt");
  });
});
