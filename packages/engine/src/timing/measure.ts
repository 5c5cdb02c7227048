/** Micro-timings of a plan's operators on this machine: what predictions of real steps rest on. */
import { type Seconds, TriremeError } from "@trireme/core";
import type { KernelChoice } from "@trireme/run";
import type { Operator } from "@trireme/workload";
import { chooseOpenBlasCore } from "../kernels/open-blas-core.ts";
import { measureOnThread } from "./measure-on-thread.ts";
import type { Measured, MeasureSeed } from "./measure-protocol.ts";

/** Options of `measureOperators`. */
export interface MeasureOptions {
  /** Time for all timings together, start of the threads not counted. */
  readonly budget: Seconds;
  /** Threads that time at once, one a core: as many as will compute at once. */
  readonly cores: number;
  /** What the run computes by (`engine.kernels`); default `wasm`. */
  readonly kernels?: KernelChoice;
}

/**
 * Median seconds of one execution of each operator, by key, while `cores` threads run the same:
 * cores share memory bandwidth and clock, in training too. Operators with equal keys are timed once;
 * recomputation is its forward.
 */
export async function measureOperators(
  operators: readonly Operator[],
  options: MeasureOptions,
): Promise<ReadonlyMap<string, Seconds>> {
  const { budget, cores, kernels = "wasm" } = options;
  if (!(budget > 0) || !Number.isInteger(cores) || cores < 1) {
    throw new TriremeError(
      "MEASURE",
      `budget ${budget} s on ${cores} cores: both must be positive, cores an integer`,
    );
  }
  const unique = [...new Map(operators.map((o) => [o.key, o])).values()];
  if (unique.length === 0) return new Map();
  const gate = new Int32Array(new SharedArrayBuffer(8));
  if (kernels !== "wasm") chooseOpenBlasCore();
  const seed: MeasureSeed = { operators: unique, budget, gate, threads: cores, kernels };
  const worker = new URL("./measure-worker", import.meta.url);
  const results = await Promise.all(
    Array.from({ length: cores }, () => measureOnThread<Measured>(worker, seed)),
  );
  const times = new Map<string, number[]>();
  for (const [key, seconds] of results.flat()) {
    const list = times.get(key);
    if (list === undefined) times.set(key, [seconds]);
    else list.push(seconds);
  }
  return new Map(Array.from(times, ([key, list]) => [key, mean(list)]));
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
