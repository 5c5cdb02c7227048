/** What a training step costs on a cluster, by cause; a plan that cannot run is a result, not an error. */
import { type Bytes, type Seconds, TriremeError, formatBytes } from "@trireme/core";
import { type Cluster, hostOf } from "@trireme/topology";
import {
  type Model,
  type Plan,
  microbatches,
  modelFlops,
  ranks,
  stageCopies,
} from "@trireme/workload";
import { exposedDataParallel } from "./data-parallel.ts";
import { type Interval, interval } from "./interval.ts";
import { type Memory, gpuOverhead, hostOverhead, memoryOf } from "./memory.ts";
import {
  type Makespan,
  type PipelineCosts,
  closedFormMakespan,
  exposedSends,
  pipelineFrom,
  workByRank,
} from "./pipeline-time.ts";
import { Prices, type PricesOptions } from "./prices.ts";
import { type PlanCosts, planCosts, sumOnRank } from "./plan-costs.ts";
import { shapeKey } from "./shape-key.ts";
import type { StepOptions } from "./step-costs.ts";

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
  /** Where four in five measured steps lie, in seconds. */
  readonly interval: Interval;
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

/** How to estimate; `makespan` replaces the closed form, `checkMemory: false` prices what does not fit. */
export interface EstimatorOptions extends PricesOptions {
  readonly makespan?: Makespan;
  readonly checkMemory?: boolean;
}

/** What to estimate, and how. */
export interface EstimateOptions extends StepOptions, EstimatorOptions {}

/** Estimates one training step. For many plans of one model on one cluster, see `estimator`. */
export function estimate(o: EstimateOptions): Estimate {
  return estimator(o)(o.plan);
}

/**
 * Estimates plans of one model on one cluster, to the same digits as `estimate`, and keeps what it has
 * worked out: kernel times by shape, collective times by group and size. What is kept grows with
 * the number of different shapes and goes with the estimator; a pricer that is passed in must give
 * an operator the same time always.
 */
export function estimator(o: EstimatorOptions): (plan: Plan) => Estimate {
  const { model, cluster } = o;
  const prices = new Prices(o);
  const device = hostOf(cluster, 0).accelerator;
  const overhead = device.kind === "cpu" ? hostOverhead : gpuOverhead;
  const makespan = o.makespan ?? closedFormMakespan;
  return (plan) => {
    if (plan.pipelines !== undefined) {
      const reason = `${plan.dp} pipelines that differ are not priced; use stages of one width, the same in each`;
      return { ok: false, reason };
    }
    const needed = ranks(plan);
    if (needed > cluster.devices) {
      const reason = `tp(${plan.tp}) x dp(${plan.dp}) x pp(${plan.pp}) = ${needed} ranks, but the cluster has ${cluster.devices} devices`;
      return { ok: false, reason };
    }
    const key = shapeKey(plan);
    const list = prices.stages(plan);
    const held = prices.held(plan, list, key, overhead);
    const needs = memoryOf(model, plan, list, overhead, held);
    if (o.checkMemory !== false && needs.total > device.memory) {
      return { ok: false, reason: outOfMemory(needs, device.memory, device.name), memory: needs };
    }
    let costs: PlanCosts;
    try {
      costs = planCosts(prices, plan, key);
    } catch (error) {
      if (error instanceof TriremeError && error.code === "PRECISION") {
        return { ok: false, reason: error.message, memory: needs };
      }
      throw error;
    }
    const breakdown = breakDown(model, plan, cluster, costs, makespan);
    const step = total(breakdown);
    const tokens = plan.globalBatch * plan.sequence;
    const peak = (device.peak[plan.precision] ?? 0) * needed;
    return {
      ok: true,
      step,
      interval: interval(model.experts === undefined ? "step" : "expert-step", step, device),
      tokensPerSecond: tokens / step,
      mfu: (modelFlops(model, plan) * tokens) / (step * peak),
      breakdown,
      memory: needs,
    };
  };
}

function total(b: Breakdown): Seconds {
  return b.compute + b.tensorParallel + b.pointToPoint + b.bubble + b.dataParallel + b.optimizer;
}

function outOfMemory(m: Memory, available: Bytes, device: string): string {
  const parts = `weights ${formatBytes(m.weights)}, gradients ${formatBytes(m.gradients)}, optimizer ${formatBytes(m.optimizer)}, activations ${formatBytes(m.activations)}`;
  return `pipeline rank ${m.rank} needs ${formatBytes(m.total)} (${parts}), but ${device} has ${formatBytes(available)}`;
}

function breakDown(
  model: Model,
  plan: Plan,
  cluster: Cluster,
  costs: PlanCosts,
  makespan: Makespan,
): Breakdown {
  const m = microbatches(plan);
  const pipeline = pipelineOf(plan, costs);
  const work = workByRank(pipeline);
  let busiest = 0;
  for (let rank = 1; rank < work.length; rank++) if (work[rank]! > work[busiest]!) busiest = rank;
  let tensorParallel = 0;
  let sharding = 0;
  const { kindOf, onRank } = costs.own.list;
  for (const s of onRank[busiest]!) {
    const k = costs.kinds[kindOf[s]!]!;
    const passes = m / stageCopies(plan);
    tensorParallel += passes * (k.tensorParallelForward + k.tensorParallelBackward);
    sharding += passes * (k.shardingForward + k.shardingBackward);
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

function pipelineOf(plan: Plan, { own, kinds, pointToPoint }: PlanCosts): PipelineCosts {
  const { kindOf, onRank } = own.list;
  const forward = new Float64Array(kindOf.length);
  const backward = new Float64Array(kindOf.length);
  const weightGradient = new Float64Array(kindOf.length);
  for (let s = 0; s < kindOf.length; s++) {
    const k = kinds[kindOf[s]!]!;
    forward[s] = k.forward;
    backward[s] = k.inputGradient + k.weightGradient + k.recompute;
    weightGradient[s] = k.weightGradient;
  }
  return pipelineFrom(plan, { forward, backward, weightGradient }, pointToPoint, onRank);
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

function optimizer(plan: Plan, cluster: Cluster, costs: PlanCosts): Seconds {
  const { rankKinds } = costs.own.list;
  let slowest = 0;
  for (const rank of rankKinds)
    slowest = Math.max(slowest, sumOnRank(costs.kinds, costs.own.list, rank, "update"));
  return slowest * crowding(plan, cluster);
}
