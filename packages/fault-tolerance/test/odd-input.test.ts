/** What must end, or be refused by name, however odd the input. */
import { hours } from "@trireme/core";
import {
  type Participant,
  type QuorumOptions,
  OutlierWatch,
  RecoveryController,
  applyCorruption,
  assignRecovery,
  checkLaw,
  clusterGoodput,
  decideQuorum,
  decodeRecord,
  drawLemons,
  encodeRecord,
  exactEttr,
  expectedEttr,
  falseAlarmShare,
  heatMap,
  instructionVulnerability,
  metricAnomaly,
  outliers,
  planRollback,
  relativeScores,
} from "@trireme/fault-tolerance";
import { playRun } from "@trireme/fault-tolerance/simulation";
import { defineCluster } from "@trireme/topology";
import { describe, expect, it } from "vitest";
import { calm } from "./run-cases.ts";

const odd = [Number.NaN, -1, 0.5, Infinity];

describe("medians", () => {
  it("of an even count are the mean of the two in the middle", () => {
    expect(metricAnomaly([1, 3], 10)).toBe("spike");
    expect(metricAnomaly([1, 3], 9.9)).toBe("none");
    // |4 − 2.5| is exactly one deviation of 1.4826 × 1 and a little: of the upper median 3 it is none.
    expect(outliers([1, 2, 3, 4], 1)).toEqual([0, 3]);
    const watch = new OutlierWatch({ window: 2, least: 2, k: 1 });
    for (const value of [1, 3]) watch.observe(value);
    expect(watch.threshold).toBeCloseTo(2 + 1.4826, 12);
  });

  it("leave out what is not finite, and need a factor", () => {
    expect(metricAnomaly([Number.NaN, 2, Infinity, 2], 10)).toBe("spike");
    for (const factor of [0, -1, Number.NaN]) {
      expect(() => metricAnomaly([2], 2, factor)).toThrow(`factor = ${factor} must be above 0`);
    }
  });
});

describe("corruptions", () => {
  const plan = { format: "float32", start: 0, stride: 1, count: 2, keep: 0, flip: 0 } as const;
  it.each([
    ["stride", 0],
    ["stride", -1],
    ["stride", Number.NaN],
    ["count", 0],
    ["count", Infinity],
    ["start", -1],
    ["start", Number.NaN],
  ])("of a %s of %d are refused", (name, value) => {
    expect(() => applyCorruption(new Float32Array(4), { ...plan, [name]: value })).toThrow(
      `${name} = ${value}: use an integer`,
    );
  });
});

it("a trace law of zeros, in which time stands still, is refused", () => {
  expect(() => checkLaw({ kind: "trace", times: [0, 0] })).toThrow("all 2 times of a trace law");
  expect(() => checkLaw({ kind: "trace", times: [0, 1] })).not.toThrow();
});

it("lemons that fail less often than others are refused when they are drawn", () => {
  const cluster = defineCluster({ host: "dgx-h100", hosts: 4 });
  for (const factor of [0.5, Number.NaN, Infinity]) {
    expect(() => drawLemons(cluster, 0.5, factor, 1)).toThrow(`lemons fail ${factor} times`);
  }
});

describe("straggler scores", () => {
  it("are never NaN: a rank that ran nothing scores 1", () => {
    const scores = relativeScores([{ name: "k", median: [1, 2, 2], count: [1, 1, 0] }]);
    expect([...scores]).toEqual([1, 0.5, 1]);
  });
  it("name the list and the value that is wrong", () => {
    const scores = (more: object) => () => relativeScores([{ name: "k", median: [1, 2], ...more }]);
    expect(scores({ count: [1] })).toThrow("kernel k: count of 1 ranks, not 2");
    expect(scores({ average: [1, Number.NaN] })).toThrow("kernel k: average = NaN must be above 0");
    expect(scores({ count: [1, -1] })).toThrow("kernel k: count = -1 must be 0 or more");
    expect(scores({ median: [1, Infinity] })).toThrow("kernel k: median = Infinity");
  });
});

describe("quorums", () => {
  const ask = (replica: string): Participant => ({ replica, step: 1, joined: 0 });
  const decide = (asking: readonly string[], more: Partial<QuorumOptions> = {}) =>
    decideQuorum({
      now: 0,
      participants: asking.map(ask),
      heartbeats: new Map(["a", "b", "c"].map((name) => [name, 0])),
      minReplicas: 1,
      joinTimeout: 0,
      ...more,
    });
  it("count no replica twice", () => {
    expect(decide(["a"]).ok).toBe(false);
    expect(() => decide(["a", "b", "a"])).toThrow("replica a asks twice");
  });
  it("need times and numbers", () => {
    for (const name of ["minReplicas", "joinTimeout", "heartbeatTimeout"]) {
      expect(() => decide(["a"], { [name]: Number.NaN })).toThrow(
        `${name} = NaN must be 0 or more`,
      );
    }
  });
  it("assign recovery of whole steps, as fast as there are replicas", () => {
    for (const value of odd) {
      expect(() => assignRecovery([1, value])).toThrow("use whole numbers from 0 up");
      expect(() => assignRecovery([1, 1], { groupRank: value })).toThrow(`groupRank ${value}`);
    }
    const steps = Array.from({ length: 100_000 }, (_, i) => 1 + (i % 2));
    const start = process.cpuUsage().user;
    const given = assignRecovery(steps);
    // 0.09 s of the processor where it was written; searched anew for each replica it took 90.
    expect((process.cpuUsage().user - start) / 1e6).toBeLessThan(1);
    expect(given[1]!.sendTo).toEqual([0]);
    expect(given[99_998]!.healFrom).toBe(99_999);
  });
});

describe("the controller", () => {
  const controller = () => new RecoveryController({ hosts: [0, 1], standbys: [], deadline: 10 }, 0);
  it.each(odd)("admits no host %d and takes no version of that number", (value) => {
    expect(() => controller().admit(value, 1)).toThrow(`host = ${value} must be a whole number`);
    expect(() => controller().update(value, 1)).toThrow(`version = ${value} must be a whole`);
  });

  it("reads no record whose evicted hosts are no pairs", () => {
    const text = encodeRecord(controller().record).replace('"evicted":[]', '"evicted":[1]');
    expect(() => decodeRecord(text)).toThrow(
      "evicted of a controller record is [1]: it is damaged",
    );
  });

  it("calls a run diverged that spikes batch after batch with no margin", () => {
    const policy = { reattempts: 0, back: 10, margin: 0, limit: 3 };
    let last;
    let [step, skip] = [20, 0];
    const ends = [];
    for (let i = 0; i < 5; i++) {
      const plan = planRollback({ step, skip, saves: [0], last, policy });
      ends.push(plan.ok ? plan.spike.count : plan.stop);
      if (!plan.ok) break;
      // The first batch after what was skipped spikes again.
      [step, skip, last] = [plan.to + 1, plan.skip, plan.spike];
    }
    expect(ends).toEqual([1, 2, 3, "diverged"]);
  });
});

describe("a played run", () => {
  const times = (more: object) => ({ ...calm, times: { ...calm.times, ...more } });
  it("refuses a pace that never goes on", () => {
    const step = { step: () => 10, next: (after: number) => after };
    expect(() => playRun(times({ step }))).toThrow("the next change must be later");
  });
  it.each([Number.NaN, 0, -1])("refuses a step that comes to take %d s", (value) => {
    const step = {
      step: (_: unknown, at: number) => (at < hours(1) ? 10 : value),
      next: (after: number) => (after < hours(1) ? hours(1) : Infinity),
    };
    expect(() => playRun(times({ step }))).toThrow(`times.step = ${value} s of 8 hosts at 3600 s`);
  });
  it.each([Number.NaN, -1])("refuses a start of %d s", (value) => {
    expect(() => playRun(times({ start: () => value }))).toThrow(`times.start = ${value} s`);
  });
});

describe("shares", () => {
  it("of a run that never saves, or waits for ever, are refused instead of NaN", () => {
    const good = { hosts: 8, failuresPerHostDay: 0.01, interval: 60, restart: 60 };
    expect(() => expectedEttr({ ...good, interval: Infinity })).toThrow("interval = Infinity");
    expect(() => exactEttr({ ...good, interval: Infinity })).toThrow("interval = Infinity");
    expect(() => expectedEttr({ ...good, hosts: 0, restart: Infinity })).toThrow("restart");
  });
  it("of jobs with NaN are refused", () => {
    const job = { gpus: 1, queued: 0, productive: Number.NaN, unproductive: 0 };
    expect(() => clusterGoodput([job], 8, 10)).toThrow("jobs ran for NaN GPU-seconds");
  });
  it("of weights of 0 are refused", () => {
    const cell = {
      instruction: "i",
      bits: "sign" as const,
      trials: 1,
      outcomes: { masked: 0, "silent-corruption": 1, detected: 0 },
      caught: new Map(),
    };
    const campaign = { cells: [cell], clean: 0, falseAlarms: new Map(), instructions: { i: 1 } };
    const weights = { sign: 0, exponent: 0, "high-mantissa": 0, "low-mantissa": 0 };
    expect(() => instructionVulnerability(campaign as never, "i", weights)).toThrow(
      "weights of the bits of i are 0 together",
    );
  });
});

it("a heat map names the time that is wrong", () => {
  expect(() => heatMap({ forward: [1, Number.NaN, 2] })).toThrow("forward: a time of NaN s");
});

it("the share of false alarms takes the hosts of a job, not all failures for each", () => {
  const job = { hosts: Array.from({ length: 2000 }, (_, i) => i), started: 0, ended: 1 };
  const failures = Array.from({ length: 20_000 }, (_, i) => ({
    name: "x",
    host: 5000 + i,
    time: 0,
  }));
  const jobs = Array.from({ length: 100 }, () => job);
  const start = process.cpuUsage().user;
  expect(falseAlarmShare(jobs, failures)).toBe(0);
  // 0.01 s of the processor where it was written; every failure looked up among every job's hosts took 4.
  expect((process.cpuUsage().user - start) / 1e6).toBeLessThan(1);
  expect(falseAlarmShare([job, job], [{ name: "x", host: 3, time: 1 }])).toBe(1);
});
