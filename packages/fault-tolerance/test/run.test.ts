import { days, hours, minutes } from "@trireme/core";
import { defineCluster } from "@trireme/topology";
import { faultsUntil, llama3Causes, stopSources } from "@trireme/fault-tolerance";
import {
  type Incident,
  type Pace,
  type Restart,
  type RunInput,
  incidentOf,
  playRun,
} from "@trireme/fault-tolerance/simulation";
import { describe, expect, it } from "vitest";

import { base, calm, decisions, hosts } from "./run-cases.ts";

describe("a run", () => {
  it("is decided alike with heartbeats elided and in full, over a 64-host day", () => {
    const elided = decisions(base(1));
    const full = decisions({ ...base(1), transport: "full" });
    expect(elided.log.length).toBeGreaterThan(40);
    expect(elided).toEqual(full);
  });

  it("without incidents trains all the time but for starting and saving", () => {
    const { spans, ettr } = playRun(calm);
    expect(spans).toHaveLength(1);
    // It begins when the last host has been told to train, within one heartbeat.
    expect(spans[0]!.began).toBeGreaterThan(100);
    expect(spans[0]!.began).toBeLessThan(110);
    // What is not committed is less than one interval and its save.
    const best = (300 / 305) * (1 - 110 / hours(10));
    expect(ettr).toBeLessThan(300 / 305);
    expect(ettr).toBeGreaterThan(best - 325 / hours(10));
  });

  it("loses the deadline, the halt and the start to a silent host, and what was not saved", () => {
    const at = hours(2);
    const silent: Incident = { time: at, symptom: "silence", hosts: [3] };
    const { spans, record } = playRun({ ...calm, incidents: [silent] });
    expect(record.members).toEqual([0, 1, 2, 8, 4, 5, 6, 7]);
    expect(record.evicted.get(3)).toBe("silent for 60 s");
    // Its last heartbeat was at most 10 s before; the others halt within a heartbeat and 10 s.
    expect(spans[0]!.ended).toBeGreaterThan(at + 50);
    expect(spans[0]!.ended).toBeLessThanOrEqual(at + 60);
    expect(spans[1]!.ordered - spans[0]!.ended).toBeLessThanOrEqual(20);
    expect(spans[1]!.step).toBe(spans[0]!.committed + 1);
    expect(spans[0]!.done - spans[0]!.committed).toBeLessThan(60);
  });

  it("plays the faults of a failure model", () => {
    const cluster = defineCluster({ host: "dgx-h100", hosts: 64 });
    const sources = stopSources(cluster, llama3Causes, 0.05);
    const faults = faultsUntil(cluster, sources, { seed: 1, until: days(10) });
    const incidents = faults.flatMap((fault) => incidentOf(fault, () => minutes(1)) ?? []);
    expect(incidents.length).toBeGreaterThan(20);
    const options = { hosts: hosts(64), standbys: [64, 65, 66], deadline: 60, minimum: 32 };
    const times = { ...calm.times, repair: hours(12) };
    const { record, spans, ettr } = playRun({ options, times, incidents, horizon: days(10) });
    expect(record.phase).toBe("training");
    expect(spans.length).toBeGreaterThan(20);
    expect(ettr).toBeGreaterThan(0.9);
  });

  it("goes on in the midst of a step when the pace changes, and stands still where it is Infinity", () => {
    const paces = [10, 20, Infinity, 10];
    const changes = [0, hours(1), hours(2), hours(3)];
    const pace: Pace = {
      step: (_, at) => paces[changes.findLastIndex((time) => time <= at)]!,
      next: (after) => changes.find((time) => time > after) ?? Infinity,
    };
    const checkpoint = { every: 30, write: 0, durable: 0 };
    const times = { ...calm.times, checkpoint, step: pace, start: 0 };
    const { spans, productive } = playRun({ ...calm, times, horizon: hours(4) });
    const [span] = spans;
    const began = span!.began;
    expect(began).toBeLessThan(10);
    // An hour of 10 s less the start, one of 20 s, none, one of 10 s.
    const steps = (hours(1) - began) / 10 + 180 + 360;
    expect(span!.done).toBe(Math.floor(steps));
    expect(span!.stretches.map(({ stepTime }) => stepTime)).toEqual(paces);
    const { committed } = span!;
    expect(committed).toBe(Math.floor(steps / 30) * 30);
    expect(productive).toBeCloseTo(hours(3) - began - (steps - committed) * 10, 6);
  });

  it("is decided alike, elided and in full, when the pace changes and starts differ", () => {
    const changes = Array.from({ length: 200 }, (_, i) => i * 431);
    const step: Pace = {
      step: (members, at) => ((7.3 * 60) / members.length) * (1 + 0.2 * ((at / 431) % 3)),
      next: (after) => changes.find((time) => time > after) ?? Infinity,
    };
    for (const seed of [2, 3]) {
      const { times, ...rest } = base(seed);
      const start = ({ record, before }: Restart): number =>
        50 + record.members.filter((host, rank) => before[rank] !== host).length;
      const input = { ...rest, times: { ...times, step, start }, horizon: hours(6) };
      const elided = decisions(input);
      expect(elided.log.length).toBeGreaterThan(5);
      expect(elided).toEqual(decisions({ ...input, transport: "full" }));
    }
  });

  it("takes the steps of earlier generations back from what was productive at a rollback", () => {
    const spike: Incident = { time: hours(2) + 300, symptom: "loss", hosts: [] };
    const restart: Incident = { time: hours(2), symptom: "software", hosts: [0] };
    const options = { ...calm.options, spike: { back: 200, margin: 0 } };
    const incidents = [restart, spike];
    const { spans, productive, record } = playRun({ ...calm, options, incidents });
    expect(record.rollbacks).toBe(1);
    expect(spans[0]!.committed).toBeGreaterThan(spans[1]!.committed);
    expect(spans[0]!.productive).toBe(10 * spans[1]!.committed);
    expect(spans[1]!.productive).toBe(0);
    expect(productive).toBe(10 * record.committed);
  });

  it("refuses times that do not fit, in one line", () => {
    const played =
      (times: Partial<RunInput["times"]>): (() => unknown) =>
      () =>
        playRun({ ...calm, times: { ...calm.times, ...times } });
    expect(played({ heartbeat: 40 })).toThrow("heartbeat = 40 s must be above 0 and at most half");
    expect(played({ step: 0.1 })).toThrow("saves every 3 s, but hosts report every 10 s");
    expect(played({ leave: -1 })).toThrow("leave = -1 s must be 0 or more");
    const late: Incident = { time: 5, symptom: "loss", hosts: [] };
    const early: Incident = { time: 4, symptom: "loss", hosts: [] };
    expect(() => playRun({ ...calm, incidents: [late, early] })).toThrow("sort them by time");
    const options = { ...calm.options, stall: 600 };
    expect(() => playRun({ ...calm, options })).toThrow("told of hangs by incidents");
  });
});
