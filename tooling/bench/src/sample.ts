/**
 * Samples of a subject, and the one number made of them. On a shared machine the least time is the
 * steadiest figure: noise only ever adds. CPU seconds leave out the time that others had the core.
 */
import type { Benchmark, Subject } from "./benchmark.ts";

/** Clocks in seconds, passed in so that the arithmetic is tested without waiting. */
export interface Clocks {
  /** Seconds since some start. */
  wall(): number;
  /** User and system seconds of this process, all its threads. */
  cpu(): number;
}

/** A sample of `time` takes at least so long: shorter calls are repeated within it. */
const leastSample = 0.02;
/** All samples of one subject, after the second, stay below so long on the wall. */
const budget = 4;
const timeSamples = 10;

/** How a benchmark is sampled; its peer is sampled alike. */
export type Sampling = Pick<Benchmark, "amount" | "clock" | "repeats" | "statistic" | "better">;

/** The figure of a subject in the unit of its benchmark; undefined where it cannot be had here. */
export async function sample(
  subject: Subject,
  how: Sampling,
  clocks: Clocks,
): Promise<number | undefined> {
  if (subject.time !== undefined) return sampleTime(subject.time, how, clocks);
  const values: number[] = [];
  for (let i = 0; i < (how.repeats ?? 1); i++) {
    const value = await subject.measure?.();
    if (value === undefined) return undefined;
    if (!Number.isFinite(value)) throw new Error(`measure() gave ${value}, which is no figure`);
    values.push(value);
  }
  return pick(values, how.statistic ?? "median", how.better);
}

async function sampleTime(time: () => unknown, how: Sampling, clocks: Clocks): Promise<number> {
  const clock = (): number => (how.clock === "wall" ? clocks.wall() : clocks.cpu());
  // Awaits only what is a promise: an await costs as much as the shortest of calls.
  const run = async (calls: number): Promise<number> => {
    const start = clock();
    for (let i = 0; i < calls; i++) {
      const result = time();
      if (result instanceof Promise) await result;
    }
    return clock() - start;
  };
  const begun = clocks.wall();
  // Doubles the calls until a sample is long enough; what ran until then was the warm-up.
  let calls = 1;
  let seconds = await run(calls);
  while (seconds < leastSample && calls < 2 ** 30) {
    calls =
      seconds <= 0
        ? calls * 2
        : Math.min(calls * 8, Math.ceil((calls * leastSample * 1.2) / seconds));
    seconds = await run(calls);
  }
  const perCall: number[] = [];
  const repeats = how.repeats ?? timeSamples;
  while (perCall.length < repeats) {
    if (how.repeats === undefined && perCall.length >= 2 && clocks.wall() - begun > budget) break;
    perCall.push((await run(calls)) / calls);
  }
  const figure = pick(perCall, how.statistic ?? "best", "lower");
  return how.amount === undefined ? figure : how.amount / figure;
}

/** The best of some values, or their median. */
export function pick(
  values: readonly number[],
  statistic: "best" | "median",
  better: "lower" | "higher",
): number {
  if (statistic === "best") return better === "lower" ? Math.min(...values) : Math.max(...values);
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  return (sorted[Math.ceil(middle) - 1]! + sorted[Math.floor(middle)]!) / 2;
}
