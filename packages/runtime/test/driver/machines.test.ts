import {
  type AgentReport,
  AgentMachine,
  DriverMachine,
  decodeDriverRecord,
  encodeDriverRecord,
} from "@trireme/runtime/driver";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

const endpoint = { address: "127.0.0.1", port: 1 };
const policy = { hosts: 2, standbys: 1, deadline: 10, joinDeadline: 100 };

function join(host: number, incarnation = `agent ${host}`) {
  return { kind: "join", host, incarnation, ranks: 2, endpoint } as const;
}

function report(host: number, more: Partial<AgentReport> = {}): AgentReport {
  return {
    kind: "report",
    host,
    incarnation: `agent ${host}`,
    generation: 1,
    begun: false,
    done: 0,
    saved: 0,
    failures: [],
    finished: false,
    endpoint,
    ...more,
  };
}

describe("the driver's machine", () => {
  it("trains nobody before every member has joined", () => {
    const machine = new DriverMachine(policy, 0);
    machine.join(join(0), 1);
    machine.join(join(2), 2);
    expect(machine.report(report(0), 3)?.order).toEqual({ kind: "halt", generation: 0 });
    machine.join(join(1), 4);
    expect(machine.report(report(0), 5)).toMatchObject({
      order: { kind: "train", generation: 1, step: 1 },
      launch: { world: 4, members: [{ host: 0 }, { host: 1 }] },
    });
  });

  it("refuses a host that has no place, until it is admitted", () => {
    const machine = new DriverMachine(policy, 0);
    for (const host of [0, 1]) machine.join(join(host), 0);
    expect(machine.join(join(3), 0)?.refuse).toContain("the run has hosts 0 to 2");
    machine.admit(3, 1);
    expect(machine.join(join(3), 1)).toBeUndefined();
  });

  it("takes another agent of a member for the loss of its workers", () => {
    const machine = new DriverMachine(policy, 0);
    for (const host of [0, 1]) machine.join(join(host), 0);
    machine.join(join(1, "another"), 1);
    expect(machine.record.controller).toMatchObject({ phase: "halting", generation: 2 });
    // The one before is not heard any more.
    expect(machine.report(report(1), 2)).toBeUndefined();
  });

  it("does not take a reconnection for one", () => {
    const machine = new DriverMachine(policy, 0);
    for (const host of [0, 1]) machine.join(join(host), 0);
    const { record } = machine;
    machine.join(join(1), 1);
    expect(machine.record).toBe(record);
  });

  it("that took over ends a run only when it has heard what every member has saved", () => {
    const first = new DriverMachine(policy, 0);
    for (const host of [0, 1]) first.join(join(host), 0);
    first.report(report(0, { begun: true, saved: 9, done: 9, finished: true }), 1);
    const second = new DriverMachine(policy, 2, first.record);
    second.report(report(1, { begun: true, saved: 9, done: 9, finished: true }), 3);
    expect(second.record.end).toBeUndefined();
    second.report(report(0, { begun: true, saved: 9, done: 9, finished: true }), 4);
    expect(second.record.end).toEqual({ ok: true, reason: "finished", step: 9 });
  });

  it("agrees on the last step once every member has told its bound, and a driver that takes over goes on with it", () => {
    const first = new DriverMachine(policy, 0);
    for (const host of [0, 1]) first.join(join(host), 0);
    first.requestStop();
    const trains = { begun: true, done: 3, saved: 3 };
    expect(first.report(report(0, trains), 1)?.stop).toEqual({ kind: "hold" });
    expect(first.report(report(0, { ...trains, bound: 5 }), 2)?.stop).toEqual({ kind: "hold" });
    const second = new DriverMachine(
      policy,
      3,
      decodeDriverRecord(encodeDriverRecord(first.record)),
    );
    const told = second.report(report(1, { ...trains, bound: 4 }), 4);
    expect(told?.stop).toEqual({ kind: "after", step: 5 });
    for (const host of [0, 1]) {
      const last = { begun: true, done: 5, saved: 5, bound: 5, finished: true };
      second.report(report(host, last), 5);
    }
    expect(second.record.end).toEqual({
      ok: true,
      reason: "stopped as asked after step 5",
      step: 5,
    });
  });

  it("ends a stop that was asked for during a recovery where it stands", () => {
    const machine = new DriverMachine(policy, 0);
    for (const host of [0, 1]) machine.join(join(host), 0);
    machine.report(report(0, { failures: [{ kind: "exit", rank: 0, code: 1 }] }), 1);
    machine.requestStop();
    expect(machine.record.end).toMatchObject({ ok: true, step: 0 });
    expect(machine.record.end?.reason).toContain("during a recovery");
    expect(machine.next).toBe(Infinity);
  });

  it.each([
    [{ ...policy, hosts: 0 }, "hosts = 0 must be a whole number of at least 1"],
    [{ ...policy, standbys: 1.5 }, "standbys = 1.5"],
    [{ ...policy, deadline: 0 }, "deadline = 0"],
    [{ ...policy, joinDeadline: Number.NaN }, "joinDeadline = NaN"],
    [{ ...policy, minimum: 3 }, "2 hosts, but at least 3 must train"],
  ])("refuses options that cannot work: %o", (options, message) => {
    expect(() => new DriverMachine(options, 0)).toThrow(message);
  });

  it("has a record that a journal gives back as it was, at any point of a run", () => {
    const act = fc.oneof(
      fc.record({ host: fc.nat(2), saved: fc.nat(5), generation: fc.nat(3), fails: fc.boolean() }),
      fc.constant("stop" as const),
      fc.constant("tick" as const),
    );
    fc.assert(
      fc.property(fc.array(act, { maxLength: 30 }), (acts) => {
        const machine = new DriverMachine(policy, 0);
        for (const host of [0, 1, 2]) machine.join(join(host), 0);
        let now = 0;
        for (const each of acts) {
          now += 1;
          if (each === "stop") machine.requestStop();
          else if (each === "tick") machine.tick(now);
          else {
            const generation = Math.min(each.generation, machine.record.controller!.generation);
            const { host, saved, fails } = each;
            const failures = fails ? [{ kind: "exit", rank: 0, code: 1 } as const] : [];
            machine.report(
              report(host, { generation, saved, done: saved, failures, bound: 3 }),
              now,
            );
          }
          const text = encodeDriverRecord(machine.record);
          expect(text).not.toContain("\n");
          expect(decodeDriverRecord(text)).toEqual(machine.record);
        }
      }),
      { numRuns: 100 },
    );
  });

  it("refuses a record of another version", () => {
    expect(() => decodeDriverRecord('{"version":9}')).toThrow("records of version 9");
  });
});

describe("the agent's machine", () => {
  const launch = {
    generation: 2,
    members: [{ host: 0, firstRank: 0, ranks: 2 }],
    world: 2,
    master: endpoint,
  };
  const train = (generation: number, step: number) =>
    ({ kind: "answer", order: { kind: "train", generation, step }, launch }) as const;
  const halt = (generation: number) =>
    ({ kind: "answer", order: { kind: "halt", generation } }) as const;
  const newMachine = (): AgentMachine => new AgentMachine({ host: 0, incarnation: "a", ranks: 2 });

  it("has left a generation only once its workers are gone", () => {
    const machine = newMachine();
    expect(machine.receive(train(2, 5)).kind).toBe("start");
    expect(machine.receive(train(2, 5)).kind).toBe("none");
    expect(machine.receive(halt(3)).kind).toBe("leave");
    expect(machine.report(endpoint).generation).toBe(2);
    // Orders that come meanwhile wait for the report after.
    expect(machine.receive(train(3, 6)).kind).toBe("none");
    machine.left();
    expect(machine.report(endpoint)).toMatchObject({ generation: 3, done: 0, saved: 0 });
    expect(machine.receive(train(3, 6)).kind).toBe("start");
    expect(machine.report(endpoint)).toMatchObject({ generation: 3, done: 5, saved: 5 });
  });

  it("takes no order of an older generation, and goes on at the late halt of its own", () => {
    const machine = newMachine();
    machine.receive(train(2, 1));
    for (const late of [halt(1), train(1, 1), halt(2), halt(0)]) {
      expect(machine.receive(late).kind).toBe("none");
    }
    expect(machine.report(endpoint).generation).toBe(2);
  });

  it("reports the step that all its ranks have saved, and the one all have finished", () => {
    const machine = newMachine();
    machine.receive(train(2, 1));
    for (const step of [1, 2, 3]) expect(machine.mayBegin(0, step)).toBe("go");
    machine.mayBegin(1, 1);
    expect(machine.report(endpoint)).toMatchObject({ done: 0, saved: 0 });
    machine.mayBegin(1, 2);
    machine.saved(0, 2);
    expect(machine.report(endpoint)).toMatchObject({ done: 1, saved: 0 });
    machine.saved(1, 2);
    expect(machine.report(endpoint)).toMatchObject({ done: 2, saved: 2 });
  });

  it("repeats a failure until the generation is left, and then forgets it", () => {
    const machine = newMachine();
    machine.receive(train(2, 1));
    machine.failed({ kind: "exit", rank: 1, code: 3 });
    for (let i = 0; i < 2; i++) expect(machine.report(endpoint).failures.length).toBe(1);
    machine.receive(halt(3));
    machine.failed({ kind: "signal", rank: 0, signal: "SIGKILL" });
    machine.left();
    expect(machine.report(endpoint).failures).toEqual([]);
  });

  it("reports what makes the host unfit", () => {
    const machine = newMachine();
    machine.receive(train(2, 1));
    expect(
      machine.receive({ kind: "answer", order: { kind: "halt", generation: 3, check: true } }),
    ).toEqual({ kind: "leave", check: true });
    machine.left("GPU 3 fell off the bus");
    expect(machine.report(endpoint).failures).toMatchObject([{ scope: "host" }]);
  });

  it("lets no rank begin a step beyond the agreed one, whatever order things come in", () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(1), { maxLength: 20 }),
        fc.array(fc.nat(1), { maxLength: 20 }),
        fc.nat(3),
        (before, during, ahead) => {
          const machine = newMachine();
          machine.receive(train(2, 1));
          const at = [0, 0];
          const begin = (rank: number): string => {
            const may = machine.mayBegin(rank, at[rank]! + 1);
            if (may === "go") at[rank]!++;
            return may;
          };
          for (const rank of before) begin(rank);
          machine.receive({ ...train(2, 1), stop: { kind: "hold" } });
          const bound = machine.report(endpoint).bound!;
          expect(bound).toBe(Math.max(...at));
          for (const rank of during) begin(rank);
          expect(Math.max(...at)).toBe(bound);
          machine.receive({ ...train(2, 1), stop: { kind: "after", step: bound + ahead } });
          for (const rank of [0, 1]) {
            while (begin(rank) === "go");
            expect(begin(rank)).toBe("end");
          }
          expect(at).toEqual([bound + ahead, bound + ahead]);
        },
      ),
    );
  });
});
