import { days, hours, minutes } from "@trireme/core";
import {
  type FaultSource,
  flapSource,
  llama3Causes,
  outageSource,
  stopSources,
} from "@trireme/fault-tolerance";
import {
  type RunOptions,
  estimatedStepTimes,
  runTimeline,
  simulateRun,
  slidingRunEttr,
} from "@trireme/simulator";
import { toChromeTrace } from "@trireme/timeline";
import { defineCluster } from "@trireme/topology";
import { definePlan } from "@trireme/workload";
import { describe, expect, test } from "vitest";
import { small } from "./run-cases.ts";

const { cluster } = small();
const stops = stopSources(cluster, llama3Causes, 0.5);
const slow = (mean: number, duration: number, factor: number): FaultSource => ({
  name: "slow host",
  component: "host",
  law: { kind: "exponential", mean },
  effect: {
    kind: "slow",
    factor: [factor, factor],
    duration: { kind: "exponential", mean: duration },
  },
});

/** Everything that can befall a run, often. */
const busy: Partial<RunOptions> = {
  sources: [
    ...stops,
    slow(days(4), hours(2), 1.3),
    flapSource(days(10), 20),
    outageSource("tor-set", days(6)),
  ],
  updates: [{ time: hours(30) }, { time: hours(40), urgent: true }],
  recovery: { minimum: 4, patience: 60, regrow: 600, restarts: 20, lease: 120 },
};
const ways = ["blocking", "two-stage", "peer-memory"] as const;

describe("a run's time", () => {
  test.each(ways)("is accounted for to the second, with saves %s", (way) => {
    for (let seed = 0; seed < 5; seed++) {
      const { checkpoint } = small();
      const run = simulateRun({ ...small(busy), checkpoint: { ...checkpoint, way }, seed });
      expect(run.interruptions.length).toBeGreaterThan(5);
      const sum = Object.values(run.time).reduce((a, b) => a + b, 0);
      // Sums of some thousand floats.
      expect(Math.abs(sum - run.end)).toBeLessThan(1e-6 * run.end);
      for (const time of Object.values(run.time)) expect(time).toBeGreaterThanOrEqual(0);
      expect(run.time.training).toBeCloseTo(run.ettr * run.end, 3);
    }
  });

  test.each(ways)("is the timeline's, without gap or overlap, with saves %s", (way) => {
    const { checkpoint } = small();
    const run = simulateRun({ ...small(busy), checkpoint: { ...checkpoint, way }, seed: 3 });
    const timeline = runTimeline(run);
    const order = [...timeline.start.keys()].toSorted(
      (a, b) => timeline.start[a]! - timeline.start[b]! || timeline.end[a]! - timeline.end[b]!,
    );
    const sums = new Map<string, number>();
    let now = 0;
    let gap = 0;
    for (const i of order) {
      gap = Math.max(gap, Math.abs(timeline.start[i]! - now));
      now = timeline.end[i]!;
      const action = timeline.actions[timeline.action[i]!]!;
      sums.set(action, (sums.get(action) ?? 0) + now - timeline.start[i]!);
    }
    expect(gap).toBeLessThan(1e-6);
    expect(now).toBeCloseTo(run.end, 6);
    for (const [what, time] of Object.entries(run.time)) {
      expect(Math.abs((sums.get(what) ?? 0) - time)).toBeLessThan(1e-3);
    }
  });

  test("is a trace that others read", () => {
    const run = simulateRun({ ...small({ sources: stops }), seed: 1 });
    const timeline = runTimeline(run);
    const trace = JSON.parse(toChromeTrace(timeline)) as { traceEvents: { ph: string }[] };
    expect(trace.traceEvents.filter(({ ph }) => ph === "X")).toHaveLength(timeline.length);
  });

  test("is the same for the same seed, and another for another", () => {
    const run = (seed: number): unknown => simulateRun({ ...small(busy), seed });
    expect(run(1)).toEqual(run(1));
    expect(run(1)).not.toEqual(run(2));
  });

  test("goes to training alone where nothing fails, but for the start and what is not saved yet", () => {
    const run = simulateRun({ ...small(), seed: 1 });
    const { step, count } = { step: estimatedStepTimes(small()).time(8), count: 40 };
    expect(run.interruptions).toEqual([]);
    expect(run.slowed).toBeCloseTo(0, 3);
    expect(run.goodput).toBeCloseTo(run.ettr, 9);
    // One start within two heartbeats and 50 s of processes; one interval unsaved.
    expect(run.time.launch).toBe(50);
    expect(run.time.lost).toBeLessThan(2 * count * step);
    expect(run.ettr).toBeGreaterThan(1 - (80 + 2 * count * step) / run.end - 1e-4);
  });

  test("over sliding windows has the mean that it has as a whole", () => {
    const run = simulateRun({ ...small(busy), seed: 4 });
    const windows = slidingRunEttr(run);
    expect(windows).toHaveLength(72);
    const mean = windows.reduce((sum, { ettr }) => sum + ettr, 0) / windows.length;
    expect(mean).toBeCloseTo(run.ettr, 6);
    expect(Math.min(...windows.map(({ ettr }) => ettr))).toBeLessThan(run.ettr - 0.05);
  });
});

describe("what befalls a run", () => {
  test("slow hosts set everybody's pace, by what one such step takes", () => {
    // All hosts are slow within minutes, and to the end.
    const always = slow(minutes(10), days(1000), 1.3);
    const run = simulateRun({ ...small({ sources: [always], detect: () => Infinity }), seed: 1 });
    const times = estimatedStepTimes(small());
    const all = new Map(Array.from({ length: 8 }, (_, host) => [host, 1.3]));
    const ratio = times.time(8, all) / times.time(8);
    expect(ratio).toBeGreaterThan(1.2);
    expect(run.interruptions).toEqual([]);
    // An hour of three days at most is not as slow.
    expect(run.ettr / run.goodput).toBeGreaterThan(1 + (ratio - 1) * (1 - 1 / 72));
    expect(run.ettr / run.goodput).toBeLessThanOrEqual(ratio + 1e-9);
  });

  test("slow hosts are evicted once they are found, and the pace is back", () => {
    const sources = [slow(days(3), days(100), 1.5)];
    const found = simulateRun({ ...small({ sources, detect: () => minutes(10) }), seed: 2 });
    const left = simulateRun({ ...small({ sources, detect: () => Infinity }), seed: 2 });
    expect(found.interruptions.every(({ cause }) => cause === "slow host")).toBe(true);
    expect(found.interruptions.length).toBeGreaterThan(2);
    expect(found.steps).toBeGreaterThan(1.1 * left.steps);
    // Ten minutes of each, half again as long.
    expect(found.slowed).toBeLessThan(found.interruptions.length * 250);
  });

  test("links that come back in time make training wait, and others restart it", () => {
    const flaps: FaultSource = {
      ...flapSource(days(8)),
      effect: { kind: "flap", duration: { kind: "weibull", shape: 50, scale: 20 } },
    };
    const run = (flapTolerance: number): ReturnType<typeof simulateRun> =>
      simulateRun({
        ...small({ sources: [flaps], flapTolerance, recovery: { restarts: 99 } }),
        seed: 1,
      });
    const patient = run(60);
    expect(patient.interruptions).toEqual([]);
    // About 80 NICs · 3 days / 8 days of 20 s, those of the standbys left out.
    expect(patient.time.standstill / 20).toBeGreaterThan(12);
    expect(patient.time.standstill / 20).toBeLessThan(40);
    const hasty = run(5);
    expect(hasty.interruptions.length).toBeGreaterThan(12);
    expect(hasty.interruptions[0]!.cause).toBe("link flap longer than 5 s");
    expect(hasty.ettr).toBeLessThan(patient.ettr);
  });

  test("copies in a peer's memory lose a step where saves to storage lose their interval", () => {
    const { checkpoint } = small();
    const sources = stops;
    const run = (way: (typeof ways)[number]): ReturnType<typeof simulateRun> =>
      simulateRun({ ...small({ sources, checkpoint: { ...checkpoint, way } }), seed: 2 });
    const [stored, memory] = [run("two-stage"), run("peer-memory")];
    const each = (of: ReturnType<typeof simulateRun>): number =>
      of.lostSteps / of.interruptions.length;
    expect(each(memory)).toBeLessThan(2.5);
    expect(each(stored)).toBeGreaterThan(10);
    expect(memory.time.recompute).toBeCloseTo(0, 6);
    expect(memory.ettr).toBeGreaterThan(stored.ettr);
  });

  test("copies that go with their host and its peer are made up for from storage", () => {
    const { checkpoint } = small();
    // Racks of four: a host and its peer of Gemini's pairs fail together.
    const sources = [outageSource("rack", days(3))];
    const options = { sources, recovery: { lease: 120 }, replacement: hours(1) };
    const near = { ...checkpoint, way: "peer-memory" as const, every: 400 };
    const run = simulateRun({ ...small({ ...options, checkpoint: near }), seed: 1 });
    expect(run.time.recompute).toBeGreaterThan(100);
    // Copies in the other rack: places 0 to 3 with 4 to 7.
    const far = {
      ...near,
      copies: (n: number) => Array.from({ length: n }, (_, i) => [i, (i + 4) % n]),
    };
    const apart = simulateRun({ ...small({ ...options, checkpoint: far }), seed: 1 });
    expect(apart.time.recompute).toBeLessThan(run.time.recompute);
    expect(apart.ettr).toBeGreaterThan(run.ettr);
  });

  test("without enough hosts a run waits, or shrinks and grows again", () => {
    const sources = stopSources(cluster, llama3Causes, 1);
    const options = { sources, replacement: hours(3) };
    const waits = simulateRun({ ...small(options), seed: 5 });
    expect(waits.time.wait).toBeGreaterThan(hours(1));
    expect(new Set(waits.spans.map(({ members }) => members))).toEqual(new Set([8]));
    const recovery = { minimum: 2, patience: 0, regrow: 60, restarts: 10 };
    const shrinks = simulateRun({ ...small({ ...options, recovery }), seed: 5 });
    // A replica is two hosts.
    expect(Math.min(...shrinks.spans.map(({ members }) => members))).toBeLessThan(8);
    expect(shrinks.spans.every(({ members }) => members % 2 === 0)).toBe(true);
    expect(shrinks.causes.map(({ cause }) => cause)).toContain("regrow");
    expect(shrinks.slowed).toBeGreaterThan(0);
    expect(shrinks.steps).toBeGreaterThan(waits.steps);
  });

  test("updates wait for an interruption unless they are urgent, and start in place", () => {
    const updates = [{ time: hours(30) }, { time: hours(31), urgent: true }];
    const run = simulateRun({ ...small({ updates }), seed: 1 });
    expect(run.interruptions).toMatchObject([{ at: hours(31), cause: "update", evicted: 0 }]);
    expect(run.record.version).toBe(2);
    expect(run.time.launch).toBe(50 + 46);
  });

  test("a crash loop ends the run, and says so", () => {
    const sources = stopSources(cluster, [llama3Causes.find(({ part }) => part === "job")!], 20);
    const run = simulateRun({ ...small({ sources, recovery: { restarts: 1 } }), seed: 1 });
    expect(run.stopped).toMatch(/^crash loop: 2 software faults/u);
    expect(run.end).toBeLessThan(days(3));
  });
});

describe("what a run costs", () => {
  test("all devices are paid for, and draw power by what they do", () => {
    const run = simulateRun({ ...small({ sources: stops, pricePerDeviceHour: 2 }), seed: 1 });
    expect(run.bill.deviceHours).toBeCloseTo(80 * 72, 6);
    expect(run.bill.money).toBeCloseTo(2 * 80 * 72, 6);
    expect(run.bill.carbon).toBeCloseTo((run.bill.energy / 3.6e6) * 0.475, 6);
    expect(run.bill.energyPerToken).toBeCloseTo(run.bill.energy / run.tokens, 12);
    const calm = simulateRun({ ...small({ pricePerDeviceHour: 2 }), seed: 1 });
    expect(calm.bill.energyPerToken).toBeLessThan(run.bill.energyPerToken);
    // A training A100 with its server and site: above 300 W · 1.5 · 1.25, below its limit's.
    const watts = calm.bill.energy / (64 * days(3));
    expect(watts).toBeGreaterThan(500);
    expect(watts).toBeLessThan(1.5 * 1.25 * (400 + 100 / 4));
  });
});

test.each([
  ["one rank", { tp: 1, pp: 1, dp: 1 }, 1],
  ["half a host", { tp: 4, pp: 1, dp: 1 }, 1],
  ["a replica of a host and a half", { tp: 4, pp: 3, dp: 1 }, 2],
  ["hosts that are not filled", { tp: 4, pp: 1, dp: 3 }, 2],
])("a run may be of %s", (_, degrees, hosts) => {
  const { model } = small();
  const plan = definePlan(model, { ...degrees, globalBatch: 3072 });
  const own = defineCluster({ host: "dgx-a100-80", hosts: hosts + 1 });
  const sources = stopSources(own, llama3Causes, 0.5);
  for (const way of ways) {
    const checkpoint = { ...small().checkpoint, way };
    const options = { plan, cluster: own, sources, checkpoint, recovery: { lease: 120 } };
    const run = simulateRun({ ...small(options), seed: 2 });
    expect(run.stopped).toBeUndefined();
    expect(run.steps).toBeGreaterThan(0);
    expect(run.spans[0]!.members).toBe(hosts);
  }
});

test("what makes no sense is refused in one line", () => {
  const refused = (options: Partial<RunOptions>): (() => unknown) => {
    return () => simulateRun({ ...small(options), seed: 1 });
  };
  const { checkpoint } = small();
  expect(refused({ horizon: 0 })).toThrow("horizon = 0 s must be above 0");
  expect(refused({ checkpoint: { ...checkpoint, every: 0 } })).toThrow("every = 0 steps");
  expect(refused({ checkpoint: { ...checkpoint, storage: 1e6 } })).toThrow(
    /use \d+ steps or more$/u,
  );
  expect(refused({ checkpoint: { ...checkpoint, storage: -1 } })).toThrow("storage = -1 must be");
  expect(refused({ pricePerDeviceHour: -1 })).toThrow("pricePerDeviceHour = -1 must be 0 or more");
  expect(refused({ drift: { every: 3600, factor: () => 0 } })).toThrow("a drift of 0 at 0 s");
  expect(refused({ recovery: { minimum: 9 } })).toThrow("8 hosts, but at least 9 must train");
});
