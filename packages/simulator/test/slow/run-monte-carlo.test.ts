import { days, hours } from "@trireme/core";
import { checkpointEfficiency } from "@trireme/checkpoint";
import {
  type FaultSource,
  exactEttr,
  expectedEttr,
  llama3Causes,
  meanTimeToFailure,
  stopSources,
} from "@trireme/fault-tolerance";
import {
  type RunOptions,
  bestSaveEvery,
  estimatedStepTimes,
  meanTimeBetweenStops,
  simulateRun,
  simulateRuns,
  stateBytes,
} from "@trireme/simulator";
import { describe, expect, test } from "vitest";
import { small } from "../run/run-cases.ts";

const seeds = (count: number): number[] => Array.from({ length: count }, (_, seed) => seed);
const { cluster, model, plan } = small();
const step = estimatedStepTimes({ model, plan, cluster }).time(8);

/** Memoryless failures of the job alone, a restart of a fixed length: what the closed forms are of. */
function memoryless(mtbf: number, checkpoint: RunOptions["checkpoint"]): RunOptions {
  const job: FaultSource = {
    name: "job",
    component: "job",
    law: { kind: "exponential", mean: mtbf },
    effect: {
      kind: "stop",
      causes: [{ name: "failure", count: 1, class: "software", part: "job" }],
    },
  };
  return small({
    sources: [job],
    detect: () => 30,
    leave: 10,
    heartbeat: 2,
    horizon: days(40),
    startup: { inPlace: 100, standby: 100 },
    recovery: { deadline: 5, leave: 60, restarts: 1e6 },
    checkpoint,
  });
}

describe("the mean of many runs", () => {
  test("is the exact ETTR of memoryless failures within its confidence interval (Daly)", () => {
    const state = stateBytes(model);
    // Saves every 600 s that block for 20 s.
    const every = Math.round(600 / step);
    const checkpoint = { way: "blocking", every, state, storage: state / 20 } as const;
    const options = memoryless(hours(3), checkpoint);
    const { ettr } = simulateRuns({ ...options, seeds: seeds(25), confidence: 0.99 });
    const groups = simulateRun({ ...options, seed: 1 }).time;
    const load = 20 + groups.groups / simulateRun({ ...options, seed: 1 }).spans.length;
    // Detection, the halt, loading: 30 + 10 + 100 + the groups and the state, nine tenths of a heartbeat of 2 s
    // until the last of eight of ten hosts is told, twice.
    const restart = 30 + 10 + 100 + load + 3.6;
    const exact = exactEttr({
      hosts: 1,
      failuresPerHostDay: 8,
      interval: every * step,
      write: 20,
      restart,
    });
    // The exact form starts a restart that fails anew from its failure; so does the run, but for the
    // 140 s in which it knows of the first. A step in progress is lost beside what is not saved.
    expect(ettr.low).toBeLessThan(exact);
    expect(ettr.high).toBeGreaterThan(exact);
    // The first order form lies below: its error is of the square of the losses.
    const first = expectedEttr({
      hosts: 1,
      failuresPerHostDay: 8,
      interval: every * step,
      write: 20,
      restart,
    });
    expect(Math.abs(first - exact)).toBeLessThan(0.005);
  });

  test("is the checkpoint package's efficiency where saves are stored behind training", () => {
    const state = stateBytes(model);
    const every = Math.round(900 / step);
    const checkpoint = {
      way: "two-stage",
      every,
      state,
      storage: state / 300,
      readers: 0.01,
    } as const;
    const options = memoryless(hours(4), checkpoint);
    const { ettr } = simulateRuns({ ...options, seeds: seeds(25), confidence: 0.99 });
    const exact = checkpointEfficiency(every * step, {
      blocking: state / 64 / 25e9,
      overlapped: 300,
      mtbf: hours(4),
      recovery: 30 + 10 + 100 + 3 + 3.6,
    });
    expect(ettr.low).toBeLessThan(exact);
    expect(ettr.high).toBeGreaterThan(exact);
  });

  test("has an interval that narrows as 1 / √runs and holds the mean of more", () => {
    const options = small({ sources: stopSources(cluster, llama3Causes, 0.5), horizon: days(5) });
    const few = simulateRuns({ ...options, seeds: seeds(25) });
    const many = simulateRuns({ ...options, seeds: seeds(400).map((seed) => seed + 1000) });
    const width = ({ low, high }: { low: number; high: number }): number => high - low;
    const ratio = width(few.ettr) / width(many.ettr);
    // 4, but for the deviation, of which 25 runs tell a seventh at one standard error.
    expect(ratio).toBeGreaterThan(2.2);
    expect(ratio).toBeLessThan(6.5);
    expect(few.ettr.low).toBeLessThan(many.ettr.high);
    expect(few.ettr.high).toBeGreaterThan(many.ettr.low);
    // Half a failure a host-day on ten hosts for five days.
    expect(Math.abs(many.interruptions.mean - 25 * 0.8)).toBeLessThan(3);
  });

  test("is best at the interval that the checkpoint package finds, against half and twice of it", () => {
    const state = stateBytes(model);
    const cost = { way: "blocking", state, storage: state / 60 } as const;
    const sources = stopSources(cluster, llama3Causes, 1);
    const mtbf = meanTimeBetweenStops(cluster, sources);
    expect(mtbf).toBeCloseTo(days(1) / 10, 6);
    const best = bestSaveEvery({ checkpoint: cost, cluster, hosts: 8, step, mtbf, recovery: 300 });
    const [half, at, twice] = [0.5, 1, 2].map((factor) => {
      const checkpoint = { ...cost, every: Math.round(best * factor) };
      const options = small({ sources, checkpoint, horizon: days(10), recovery: { restarts: 99 } });
      return simulateRuns({ ...options, seeds: seeds(25) }).ettr.mean;
    });
    expect(at).toBeGreaterThan(half!);
    expect(at).toBeGreaterThan(twice!);
    const memory = bestSaveEvery({
      checkpoint: { ...cost, way: "peer-memory" },
      cluster,
      hosts: 8,
      step,
      mtbf,
    });
    expect(memory).toBe(Math.ceil(60 / step));
  });

  test("is worse for more failures, and never for faster storage", () => {
    const run = (rate: number, storage: number): number =>
      simulateRuns({
        ...small({ sources: stopSources(cluster, llama3Causes, rate) }),
        checkpoint: { ...small().checkpoint, way: "blocking", storage },
        seeds: seeds(20),
      }).ettr.mean;
    expect(run(0.2, 1e9)).toBeGreaterThan(run(0.8, 1e9));
    expect(run(0.5, 4e9)).toBeGreaterThan(run(0.5, 1e9));
    expect(() => simulateRuns({ ...small(), seeds: [1] })).toThrow(
      "1 seeds: an interval needs two or more",
    );
    expect(meanTimeToFailure(8, 0.5)).toBe(days(1) / 4);
  });
});
