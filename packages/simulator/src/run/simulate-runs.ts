/** Many runs of many seeds: means of what they come to, with confidence intervals. */
import { TriremeError } from "@trireme/core";
import { type RunOptions, prepareRun } from "./run-options.ts";
import { playPrepared } from "./simulate-run.ts";

export interface MonteCarloOptions {
  /** Seeds, each a run; two or more. */
  readonly seeds: readonly number[];
  /** Confidence of the intervals; 0.95 by default. */
  readonly confidence?: 0.9 | 0.95 | 0.99;
}

/** A mean over runs, and the interval that it lies in with the confidence asked for. */
export interface RunMean {
  readonly mean: number;
  readonly low: number;
  readonly high: number;
  /** Standard deviation between runs. */
  readonly deviation: number;
}

export interface RunStatistics {
  readonly runs: number;
  /** Runs that the controller stopped before the horizon. */
  readonly stopped: number;
  readonly ettr: RunMean;
  readonly goodput: RunMean;
  readonly steps: RunMean;
  readonly lostSteps: RunMean;
  readonly interruptions: RunMean;
  /** In joules. */
  readonly energy: RunMean;
  /** In joules; of runs that kept any step. */
  readonly energyPerToken: RunMean;
}

type Metric = Exclude<keyof RunStatistics, "runs" | "stopped">;

/** Normal quantiles of two-sided intervals. */
const quantiles = {
  0.9: 1.644_853_626_951_47,
  0.95: 1.959_963_984_540_05,
  0.99: 2.575_829_303_5489,
};

/**
 * Plays a run for each seed and keeps sums alone.
 * @throws TriremeError "RUN" for fewer than two seeds, and whatever `simulateRun` refuses.
 */
export function simulateRuns(options: RunOptions & MonteCarloOptions): RunStatistics {
  const { seeds, confidence = 0.95 } = options;
  if (seeds.length < 2) {
    throw new TriremeError("RUN", `${seeds.length} seeds: an interval needs two or more`);
  }
  const prepared = prepareRun(options);
  const column = (): Float64Array => new Float64Array(seeds.length);
  const values: Readonly<Record<Metric, Float64Array>> = {
    ettr: column(),
    goodput: column(),
    steps: column(),
    lostSteps: column(),
    interruptions: column(),
    energy: column(),
    energyPerToken: column(),
  };
  let stopped = 0;
  for (const [i, seed] of seeds.entries()) {
    const run = playPrepared(prepared, seed);
    if (run.stopped !== undefined) stopped++;
    values.ettr[i] = run.ettr;
    values.goodput[i] = run.goodput;
    values.steps[i] = run.steps;
    values.lostSteps[i] = run.lostSteps;
    values.interruptions[i] = run.interruptions.length;
    values.energy[i] = run.bill.energy;
    values.energyPerToken[i] = run.bill.energyPerToken;
  }
  const mean = (name: Metric): RunMean =>
    meanOf(values[name].filter(Number.isFinite), quantiles[confidence]);
  return {
    runs: seeds.length,
    stopped,
    ettr: mean("ettr"),
    goodput: mean("goodput"),
    steps: mean("steps"),
    lostSteps: mean("lostSteps"),
    interruptions: mean("interruptions"),
    energy: mean("energy"),
    energyPerToken: mean("energyPerToken"),
  };
}

function meanOf(values: Float64Array, normal: number): RunMean {
  const n = values.length;
  const mean = values.reduce((sum, each) => sum + each, 0) / n;
  const squares = values.reduce((sum, each) => sum + (each - mean) ** 2, 0);
  const deviation = Math.sqrt(squares / (n - 1));
  const half = (studentQuantile(normal, n - 1) * deviation) / Math.sqrt(n);
  return { mean, low: mean - half, high: mean + half, deviation };
}

/** Student's quantile from the normal one (Fisher and Cornish 1960), within 1 % from 4 degrees up. */
function studentQuantile(z: number, degrees: number): number {
  const z2 = z * z;
  const first = (z * (z2 + 1)) / 4;
  const second = (z * (5 * z2 * z2 + 16 * z2 + 3)) / 96;
  const third = (z * (3 * z2 ** 3 + 19 * z2 * z2 + 17 * z2 - 15)) / 384;
  return z + first / degrees + second / degrees ** 2 + third / degrees ** 3;
}
