import { minutes } from "@trireme/core";
import {
  Inspector,
  attribute,
  detectionTime,
  falseAlarmShare,
  healthVerdict,
  inspections,
} from "@trireme/fault-tolerance";
import { describe, expect, it } from "vitest";

describe("ByteRobust's inspections", () => {
  it("notice faults in the times of table 3", () => {
    const time = (name: string): number =>
      detectionTime(inspections.find((each) => each.name === name)!);
    expect(
      [
        "NIC crash",
        "port flap",
        "switch unreachable",
        "GPU driver hang",
        "GPU temperature",
        "GPU lost",
        "kernel fault",
      ].map(time),
    ).toEqual([30, 30, 60, 10, 10, 10, 2]);
  });

  it("evict at once on sure events, and on the second network alert within five minutes", () => {
    const inspector = new Inspector();
    expect(inspector.observe("GPU lost", 1, false, 0)).toBe("evict");
    expect(inspector.observe("port flap", 2, false, 0)).toBe("alert");
    expect(inspector.observe("port flap", 2, true, 30)).toBe("none");
    expect(inspector.observe("port flap", 2, false, 301)).toBe("alert");
    expect(inspector.observe("NIC crash", 2, false, 331)).toBe("evict");
    expect(inspector.observe("GPU temperature", 3, false, 0)).toBe("alert");
  });

  it("need two misses of a switch in a row", () => {
    const inspector = new Inspector();
    const poll = (ok: boolean, now: number): string =>
      inspector.observe("switch unreachable", 0, ok, now);
    expect([poll(false, 0), poll(true, 30), poll(false, 60), poll(false, 90)]).toEqual([
      "none",
      "none",
      "none",
      "alert",
    ]);
    poll(false, 120);
    inspector.reset(0);
    expect([poll(false, 150), poll(false, 180)]).toEqual(["none", "alert"]);
    expect(() => inspector.observe("port flop", 0, true, 0)).toThrow('did you mean "port flap"?');
    expect(() => new Inspector({ tolerated: 0 })).toThrow("0 events");
  });
});

describe("RSC's health checks", () => {
  it("remove for high severity, drain for low", () => {
    expect(healthVerdict([])).toBe("keep");
    expect(healthVerdict(["disk nearly full"])).toBe("drain");
    expect(healthVerdict(["disk nearly full", "NVLink error"])).toBe("remove");
    expect(() => healthVerdict(["NVLink errors"])).toThrow('did you mean "NVLink error"?');
  });

  it("put a failure down to checks of the last ten minutes or the five after", () => {
    const job = { hosts: [1, 2], started: 0, ended: minutes(60) };
    const check = (host: number, minute: number) => ({
      name: "NVLink error",
      host,
      time: minutes(minute),
    });
    const failures = [check(1, 49.9), check(2, 65), check(1, 50), check(3, 60), check(2, 65.1)];
    expect(attribute(job, failures)).toEqual([check(1, 50), check(2, 65)]);
    expect(falseAlarmShare([job, { ...job, hosts: [7] }], failures)).toBe(0.5);
    expect(falseAlarmShare([], failures)).toBe(0);
  });
});
