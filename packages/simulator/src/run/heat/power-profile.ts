/** Power of all devices through a step: bursts as well as the mean (CharLLM-PPT, MICRO 2025). */
import type { Joules, Seconds, Watts } from "@trireme/core";
import { categoryOf, spanKinds } from "@trireme/timeline";
import type { StepSimulation } from "../../step/simulate-step.ts";
import type { DevicePower } from "./device-power.ts";

export interface PowerProfile {
  /** When power changes, and what it is from then on; the last time is the step's end. */
  readonly times: Float64Array;
  readonly power: Float64Array;
  readonly mean: Watts;
  readonly peak: Watts;
  readonly peakToMean: number;
  readonly energy: Joules;
}

/**
 * Power through a simulated step: each device draws `busy` while anything computes on it, and `waiting`
 * else. Ranks that were not simulated draw what their stand-ins do.
 */
export function powerProfile(step: StepSimulation, { busy, waiting }: DevicePower): PowerProfile {
  const { timeline, standIn } = step;
  const weight = new Map<number, number>();
  for (const rank of standIn) weight.set(rank, (weight.get(rank) ?? 0) + 1);
  const compute = spanKinds.map((kind) => categoryOf(kind) === "compute");
  const edges: { readonly at: Seconds; readonly rank: number; readonly by: 1 | -1 }[] = [];
  for (let i = 0; i < timeline.length; i++) {
    if (!compute[timeline.kind[i]!]!) continue;
    const rank = timeline.rank[i]!;
    edges.push({ at: timeline.start[i]!, rank, by: 1 }, { at: timeline.end[i]!, rank, by: -1 });
  }
  edges.sort((a, b) => a.at - b.at);
  const running = new Map<number, number>();
  let computing = 0;
  const times = [0];
  const power = [standIn.length * waiting];
  for (const { at, rank, by } of edges) {
    const before = running.get(rank) ?? 0;
    running.set(rank, before + by);
    if (before > 0 === before + by > 0) continue;
    computing += by * (weight.get(rank) ?? 0);
    const now = standIn.length * waiting + computing * (busy - waiting);
    if (at > times.at(-1)!) {
      times.push(at);
      power.push(now);
    } else power[power.length - 1] = now;
  }
  times.push(Math.max(step.step, times.at(-1)!));
  let energy = 0;
  for (const [i, each] of power.entries()) energy += each * (times[i + 1]! - times[i]!);
  const mean = energy / times.at(-1)!;
  const peak = power.reduce((most, each) => Math.max(most, each), 0);
  return {
    times: Float64Array.from(times),
    power: Float64Array.from(power),
    mean,
    peak,
    peakToMean: peak / mean,
    energy,
  };
}
