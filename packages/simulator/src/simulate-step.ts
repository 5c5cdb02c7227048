/** One training step of a plan on a cluster, event by event. */
import { type Seconds, TriremeError } from "@trireme/core";
import { type Memory, memory } from "@trireme/cost-model";
import { type Timeline, statistics } from "@trireme/timeline";
import { type Cluster, hostIndex, hostOf } from "@trireme/topology";
import { type Plan, modelFlops, ranks } from "@trireme/workload";
import { type Fold, type SimulateOptions, describeStep } from "./describe-step.ts";
import { type PlayOptions, play } from "./play.ts";
import { stepProgram } from "./step-program.ts";

/** What a simulated step comes to. */
export interface StepSimulation {
  /** From the first action to the last update (or gathering of weights). */
  readonly step: Seconds;
  readonly tokensPerSecond: number;
  /** Ranks of the mesh that were simulated; the others of a fold do the same at the same times. */
  readonly timeline: Timeline;
  /** Mean over the simulated ranks of the time neither computing nor in exposed communication. */
  readonly bubble: number;
  /** Mean over the simulated ranks of the exposed communication, of the step. */
  readonly exposedCommunication: number;
  /** Model FLOPs over the peak of all ranks in the plan's precision. */
  readonly mfu: number;
  /** How the FLOPs are counted: 6N + 12Las, the whole score matrix, no recomputation. */
  readonly mfuConvention: "model-full";
  readonly memory: Memory;
  /** Whether that fits in a device. */
  readonly fits: boolean;
  /** Whether one rank of each tensor-parallel and data-parallel group stands for all. */
  readonly folded: boolean;
}

/**
 * Simulates one step. Ranks of a tensor-parallel or data-parallel group do the same at the same
 * times as long as each device computes at its own speed, so that one pipeline stands for all; only
 * where devices of a host share its cores is every rank simulated.
 * @throws TriremeError `PLAN` when the plan has more ranks than the cluster devices, `PRECISION`
 * when the device does not compute in the plan's precision.
 */
export function simulateStep(o: SimulateOptions): StepSimulation {
  const { model, plan, cluster } = o;
  const needed = ranks(plan);
  if (needed > cluster.devices) {
    throw new TriremeError(
      "PLAN",
      `tp(${plan.tp}) x dp(${plan.dp}) x pp(${plan.pp}) = ${needed} ranks, but the cluster has ${cluster.devices} devices`,
    );
  }
  const device = hostOf(cluster, 0).accelerator;
  const peak = device.peak[plan.precision];
  if (peak === undefined) {
    throw new TriremeError(
      "PRECISION",
      `${device.name} has no ${plan.precision} arithmetic; use ${Object.keys(device.peak).join(" or ")}`,
    );
  }
  const shared = sharedHosts(cluster, plan);
  const folded = shared.length === 0;
  const fold: Fold = folded
    ? { tp: 1, dp: 1, device: (p) => p * plan.tp * plan.dp }
    : { tp: plan.tp, dp: plan.dp, device: (rank) => rank };
  const program = stepProgram(describeStep(o, fold));
  const rankOf = program.ranks.map((_, rank) => fold.device(rank));
  const timeline = play(program, { rankOf, shared });
  const { makespan, bubble, exposedCommunication } = statistics(timeline);
  const needs = memory({ model, plan });
  const tokens = plan.globalBatch * plan.sequence;
  return {
    step: makespan,
    tokensPerSecond: tokens / makespan,
    timeline,
    bubble,
    exposedCommunication,
    mfu: (modelFlops(model, plan) * tokens) / (makespan * peak * needed),
    mfuConvention: "model-full",
    memory: needs,
    fits: needs.total <= device.memory,
    folded,
  };
}

/** Hosts with more ranks than cores, and their ranks. */
function sharedHosts(cluster: Cluster, plan: Plan): NonNullable<PlayOptions["shared"]> {
  const all = new Map<number, number[]>();
  for (let rank = 0; rank < ranks(plan); rank++) {
    const { concurrency, accelerators } = hostOf(cluster, rank);
    if (concurrency >= accelerators) continue;
    const host = hostIndex(cluster, rank);
    const list = all.get(host);
    if (list === undefined) all.set(host, [rank]);
    else list.push(rank);
  }
  return [...all.values()]
    .map((members) => ({ cores: hostOf(cluster, members[0]!).concurrency, ranks: members }))
    .filter((host) => host.ranks.length > host.cores);
}
