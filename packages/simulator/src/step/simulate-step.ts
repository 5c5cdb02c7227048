/** One training step of a plan on a cluster, event by event. */
import type { Seconds } from "@trireme/core";
import type { Memory } from "@trireme/cost-model";
import { type Lane, type Timeline, laneCode, lanes, statistics } from "@trireme/timeline";
import { type Cluster, hostOf, peakOf } from "@trireme/topology";
import { type FlopConvention, type Plan, modelFlops, ranks } from "@trireme/workload";
import { AggregateRecorder, type RankTotals } from "../program/aggregate.ts";
import { playInto } from "../program/play.ts";
import { TimelineRecorder } from "../program/recorder.ts";
import { type PlayableStep, check } from "./playable-step.ts";
import { type SimulateOptions, simulatedStep } from "./simulated-step.ts";
import { stagedStep } from "./staged-step.ts";

/** What a step comes to, however its spans are kept. */
export interface StepSummary {
  /** From the first action to the last update (or gathering of weights). */
  readonly step: Seconds;
  readonly tokensPerSecond: number;
  /** Mean over all ranks of the time neither computing nor in exposed communication, of the step. */
  readonly bubble: number;
  /** Mean over all ranks of the exposed communication, of the step. */
  readonly exposedCommunication: number;
  /** Model FLOPs over the peak of all ranks in the plan's precision. */
  readonly mfu: number;
  /** How the FLOPs are counted: 6N + 12Las, the whole score matrix, no recomputation. */
  readonly mfuConvention: "model-full";
  /** The same under each published convention. */
  readonly utilisation: Readonly<Record<FlopConvention, number>>;
  /** FLOPs that kernels do, recomputation included, over that peak. */
  readonly hfu: number;
  /** Mean over all ranks of the time that each lane has something under way, of the step, and bytes of a rank. */
  readonly lanes: Readonly<Record<Lane, LaneLoad>>;
  readonly memory: Memory;
  /** Whether that fits in a device. */
  readonly fits: boolean;
  /** Whether some ranks stand for others that do the same at the same times. */
  readonly folded: boolean;
  /** By rank of the plan: the rank that was simulated for it. */
  readonly standIn: Int32Array;
  /** Events played. */
  readonly events: number;
}

/** Load of a lane, a mean over ranks. */
export interface LaneLoad {
  /** Seconds of its spans, those side by side both counted, over the step. */
  readonly load: number;
  /** Bytes of a step and rank. */
  readonly bytes: number;
}

/** A simulated step with every span. */
export interface StepSimulation extends StepSummary {
  /** Ranks that were simulated; the others do what their stand-ins do. */
  readonly timeline: Timeline;
}

/** A simulated step in sums. */
export interface StepTotals extends StepSummary {
  /** Of one rank of the plan. */
  readonly rank: (rank: number) => RankTotals;
}

/** Makes the step of any plan ready to be played; throws as `simulatedStep` and `stagedStep` do. */
export function playableStep(o: SimulateOptions): PlayableStep {
  if (o.plan.pipelines === undefined) return simulatedStep(o);
  check(o.plan, o.cluster);
  return stagedStep(o);
}

/**
 * Simulates one step and keeps every span. Ranks that must behave alike are simulated once.
 * @throws TriremeError `PLAN` when the plan has more ranks than the cluster devices, `PRECISION`
 * when the device does not compute in the plan's precision.
 */
export function simulateStep(o: SimulateOptions): StepSimulation {
  const prepared = playableStep(o);
  const { program, ranks: simulated } = prepared;
  const recorder = new TimelineRecorder(program.labels, { rankOf: simulated.rankOf });
  const { events } = playInto(program, recorder, prepared.play);
  const timeline = recorder.finish();
  const { makespan, ranks: list, byLane } = statistics(timeline);
  const weightOf = new Map<number, number>();
  simulated.rankOf.forEach((rank, i) => weightOf.set(rank, simulated.weight[i]!));
  let [bubble, exposed, flops] = [0, 0, 0];
  for (const { rank, compute, exposedCommunication } of list) {
    const weight = weightOf.get(rank)!;
    bubble += weight * Math.max(0, makespan - compute - exposedCommunication);
    exposed += weight * exposedCommunication;
  }
  const time = new Float64Array(lanes.length);
  const bytes = new Float64Array(lanes.length);
  for (let i = 0; i < timeline.length; i++) {
    const weight = weightOf.get(timeline.rank[i]!)!;
    flops += weight * timeline.flops[i]!;
    if (byLane[lanes[timeline.lane[i]!]!] === undefined) continue;
    time[timeline.lane[i]!]! += weight * (timeline.end[i]! - timeline.start[i]!);
    bytes[timeline.lane[i]!]! += weight * timeline.bytes[i]!;
  }
  const sums = { makespan, bubble, exposed, flops, time, bytes, events };
  return { ...summary(o, prepared, sums), timeline };
}

/** Simulates one step and keeps sums alone: for so many ranks that their spans would not fit. */
export function sumStep(o: SimulateOptions): StepTotals {
  const prepared = playableStep(o);
  const { program, ranks: simulated } = prepared;
  const recorder = new AggregateRecorder(program.labels, simulated.count);
  const { events } = playInto(program, recorder, prepared.play);
  let [bubble, exposed, flops] = [0, 0, 0];
  const time = new Float64Array(lanes.length);
  const bytes = new Float64Array(lanes.length);
  for (let i = 0; i < simulated.count; i++) {
    const own = recorder.rank(i);
    const weight = simulated.weight[i]!;
    bubble += weight * (own.idle + own.other);
    exposed += weight * own.exposedCommunication;
    flops += weight * recorder.flops(i);
    for (const [code, lane] of lanes.entries()) {
      time[code]! += weight * own.lanes[lane].time;
      bytes[code]! += weight * own.lanes[lane].bytes;
    }
  }
  const sums = { makespan: recorder.makespan, bubble, exposed, flops, time, bytes, events };
  return {
    ...summary(o, prepared, sums),
    rank: (rank) => recorder.rank(simulated.standIn[rank]!),
  };
}

/** Sums over all ranks of the plan. */
interface Sums {
  readonly makespan: Seconds;
  readonly bubble: Seconds;
  readonly exposed: Seconds;
  readonly flops: number;
  readonly time: Float64Array;
  readonly bytes: Float64Array;
  readonly events: number;
}

function summary(o: SimulateOptions, prepared: PlayableStep, sums: Sums): StepSummary {
  const { model, plan, cluster } = o;
  const { standIn, rankOf } = prepared.ranks;
  const count = ranks(plan);
  const whole = sums.makespan * count;
  const peak = meanPeak(cluster, plan) * whole;
  const tokens = plan.globalBatch * plan.sequence;
  const share = (part: number, of: number): number => (of > 0 ? part / of : 0);
  const under = (convention: FlopConvention): number =>
    share(modelFlops(model, plan, convention) * tokens, peak);
  const laneLoad = (lane: Lane): LaneLoad => {
    const code = laneCode(lane);
    return { load: share(sums.time[code]!, whole), bytes: sums.bytes[code]! / count };
  };
  const { memory: needs, device } = prepared;
  return {
    step: sums.makespan,
    tokensPerSecond: share(tokens, sums.makespan),
    bubble: share(sums.bubble, whole),
    exposedCommunication: share(sums.exposed, whole),
    mfu: under("model-full"),
    mfuConvention: "model-full",
    utilisation: {
      "model-full": under("model-full"),
      "model-causal": under("model-causal"),
      "model-embedded": under("model-embedded"),
      "matrix-full": under("matrix-full"),
      "matrix-causal": under("matrix-causal"),
      exact: under("exact"),
      hardware: under("hardware"),
    },
    hfu: share(sums.flops, peak),
    lanes: {
      compute: laneLoad("compute"),
      intra: laneLoad("intra"),
      inter: laneLoad("inter"),
      copy: laneLoad("copy"),
      host: laneLoad("host"),
    },
    memory: needs,
    fits: needs.total <= device.memory,
    folded: prepared.folded,
    standIn: standIn.map((one) => rankOf[one]!),
    events: sums.events,
  };
}

/** FLOPs a second of a device of the plan in its precision, a mean where they differ. */
function meanPeak(cluster: Cluster, plan: Plan): number {
  const of = (device: number): number =>
    peakOf(hostOf(cluster, device).accelerator, plan.precision) ?? 0;
  if (plan.pipelines === undefined) return of(0);
  const count = ranks(plan);
  let sum = 0;
  for (let device = 0; device < count; device++) sum += of(device);
  return sum / count;
}
