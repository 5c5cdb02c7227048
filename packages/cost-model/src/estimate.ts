/** What a training step costs on a cluster, by cause; a plan that cannot run is a result, not an error. */
import { type Bytes, type Seconds, TriremeError, formatBytes } from "@trireme/core";
import { type Cluster, hostOf } from "@trireme/topology";
import { type Model, type Plan, microbatches, modelFlops, ranks } from "@trireme/workload";
import { exposedDataParallel } from "./data-parallel.ts";
import { type Memory, gpuOverhead, memory } from "./memory.ts";
import {
  type Makespan,
  closedFormMakespan,
  exposedSends,
  pipelineCosts,
  workByRank,
} from "./pipeline-time.ts";
import { type StepCosts, type StepOptions, stepCosts } from "./step-costs.ts";

/** Seconds of a step by cause; they sum to the step. Seen from the busiest pipeline rank. */
export interface Breakdown {
  /** Kernels, recomputation included. */
  readonly compute: Seconds;
  /** Exposed tensor-parallel collectives. */
  readonly tensorParallel: Seconds;
  /** Exposed sends between stages. */
  readonly pointToPoint: Seconds;
  /** Waiting for other stages. */
  readonly bubble: Seconds;
  /** Exposed reduction of gradients and gathering of weights. */
  readonly dataParallel: Seconds;
  readonly optimizer: Seconds;
}

/** The cost of a plan. */
export interface Cost {
  readonly ok: true;
  readonly step: Seconds;
  readonly tokensPerSecond: number;
  /** Model FLOPs, whole score matrix ("model-full"), over the peak of all ranks. */
  readonly mfu: number;
  readonly breakdown: Breakdown;
  readonly memory: Memory;
}

/** Why a plan cannot run, with the numbers. */
export interface Infeasible {
  readonly ok: false;
  readonly reason: string;
  /** What it would need, where that is known. */
  readonly memory?: Memory;
}

export type Estimate = Cost | Infeasible;

/** What to estimate; `makespan` replaces the closed form, `checkMemory: false` prices what does not fit. */
export interface EstimateOptions extends StepOptions {
  readonly makespan?: Makespan;
  readonly checkMemory?: boolean;
}

/** Estimates one training step. */
export function estimate(o: EstimateOptions): Estimate {
  const { model, plan, cluster } = o;
  const needed = ranks(plan);
  if (needed > cluster.devices) {
    const reason = `tp(${plan.tp}) x dp(${plan.dp}) x pp(${plan.pp}) = ${needed} ranks, but the cluster has ${cluster.devices} devices`;
    return { ok: false, reason };
  }
  const device = hostOf(cluster, 0).accelerator;
  const overhead = device.kind === "cpu" ? { fixed: 0, fragmentation: 0 } : gpuOverhead;
  const needs = memory({ model, plan, overhead });
  if (o.checkMemory !== false && needs.total > device.memory) {
    return { ok: false, reason: outOfMemory(needs, device.memory, device.name), memory: needs };
  }
  let costs: StepCosts;
  try {
    costs = stepCosts(o);
  } catch (error) {
    if (error instanceof TriremeError && error.code === "PRECISION") {
      return { ok: false, reason: error.message, memory: needs };
    }
    throw error;
  }
  const breakdown = breakDown(model, plan, cluster, costs, o.makespan ?? closedFormMakespan);
  const step = Object.values(breakdown).reduce((a: number, b: number) => a + b, 0);
  const tokens = plan.globalBatch * plan.sequence;
  const peak = (device.peak[plan.precision] ?? 0) * needed;
  return {
    ok: true,
    step,
    tokensPerSecond: tokens / step,
    mfu: (modelFlops(model, plan) * tokens) / (step * peak),
    breakdown,
    memory: needs,
  };
}

function outOfMemory(m: Memory, available: Bytes, device: string): string {
  const parts = `weights ${formatBytes(m.weights)}, gradients ${formatBytes(m.gradients)}, optimizer ${formatBytes(m.optimizer)}, activations ${formatBytes(m.activations)}`;
  return `pipeline rank ${m.rank} needs ${formatBytes(m.total)} (${parts}), but ${device} has ${formatBytes(available)}`;
}

function breakDown(
  model: Model,
  plan: Plan,
  cluster: Cluster,
  costs: StepCosts,
  makespan: Makespan,
): Breakdown {
  const m = microbatches(plan);
  const pipeline = pipelineCosts(plan, costs);
  const work = workByRank(pipeline);
  const busiest = work.indexOf(Math.max(...work));
  let tensorParallel = 0;
  let sharding = 0;
  for (let s = busiest; s < pipeline.forward.length; s += plan.pp) {
    tensorParallel += m * (costs.tensorParallel.forward[s]! + costs.tensorParallel.backward[s]!);
    sharding += m * (costs.sharding.forward[s]! + costs.sharding.backward[s]!);
  }
  const pointToPoint = m * exposedSends(pipeline);
  const busy = m * work[busiest]!;
  const compute = busy - tensorParallel - sharding;
  const alone = makespan(pipeline);
  const shared = sharedCores(plan, cluster, work, m);
  // Devices that share cores slow each other down while they compute; waiting ones leave theirs.
  const stretched = compute * Math.max(1, shared / Math.max(alone, busy));
  return {
    compute: stretched,
    tensorParallel,
    pointToPoint,
    bubble: Math.max(
      0,
      Math.max(alone, shared) - stretched - tensorParallel - sharding - pointToPoint,
    ),
    dataParallel: sharding + exposedDataParallel(model, plan, costs),
    optimizer: optimizer(plan, cluster, costs),
  };
}

/** Devices of the plan on its first host, per core that computes at once. */
function crowding(plan: Plan, cluster: Cluster): number {
  const host = hostOf(cluster, 0);
  return Math.max(1, Math.min(ranks(plan), host.accelerators) / host.concurrency);
}

/** Time the host's cores need for the work of all its devices; 0 where each device has its own. */
function sharedCores(
  plan: Plan,
  cluster: Cluster,
  work: Float64Array,
  microbatchCount: number,
): Seconds {
  const crowd = crowding(plan, cluster);
  if (crowd === 1) return 0;
  const mean = work.reduce((a, b) => a + b, 0) / work.length;
  return crowd * mean * microbatchCount;
}

function optimizer(plan: Plan, cluster: Cluster, costs: StepCosts): Seconds {
  return Math.max(...costs.optimizer) * crowding(plan, cluster);
}
