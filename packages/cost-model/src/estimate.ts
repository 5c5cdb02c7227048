/** What a training step costs on a cluster, by cause; a plan that cannot run is a result, not an error. */
import { type Seconds, TriremeError, formatBytes } from "@trireme/core";
import { type Accelerator, type Cluster, hostOf, peakOf } from "@trireme/topology";
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
import { stagedCosts } from "./staged-costs.ts";
import { stagedBreakdown, stagedMemory } from "./staged-estimate.ts";
import type { StepOptions } from "./step-costs.ts";
import { exposedExchange } from "./vocabulary-costs.ts";

/** Seconds of a step by cause; they sum to the step. Seen from the busiest pipeline rank. */
export interface Breakdown {
  /** Kernels, recomputation included. */
  readonly compute: Seconds;
  /** Exposed tensor-parallel collectives. */
  readonly tensorParallel: Seconds;
  /** Exposed sends between stages, and exchanges of a vocabulary that is split over them. */
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
    const needed = ranks(plan);
    if (needed > cluster.devices) {
      return { ok: false, reason: tooManyRanks(plan, needed, cluster.devices) };
    }
    const priced = plan.pipelines === undefined ? usual(plan, needed) : staged(plan, needed);
    if (!priced.ok) return priced;
    const { breakdown, memory: needs, peak } = priced;
    const step = total(breakdown);
    const tokens = plan.globalBatch * plan.sequence;
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

  function usual(plan: Plan, needed: number): Priced | Infeasible {
    const key = shapeKey(plan);
    const list = prices.stages(plan);
    const held = prices.held(plan, list, key, overhead);
    const needs = memoryOf(model, plan, list, overhead, held);
    if (o.checkMemory !== false && needs.total > device.memory) {
      return { ok: false, reason: outOfMemory(needs, device), memory: needs };
    }
    const costs = inPrecision(() => planCosts(prices, plan, key), needs);
    if (!costs.ok) return costs;
    const breakdown = breakDown(model, plan, cluster, costs.value, makespan);
    const peak = (peakOf(device, plan.precision) ?? 0) * needed;
    return { ok: true, breakdown, memory: needs, peak };
  }

  function staged(plan: Plan, needed: number): Priced | Infeasible {
    const costs = inPrecision(() => stagedCosts(prices, plan));
    if (!costs.ok) return costs;
    const { memory: needs, device: fullest } = stagedMemory(prices, costs.value, overhead);
    if (o.checkMemory !== false && needs.total > fullest.memory) {
      return { ok: false, reason: outOfMemory(needs, fullest), memory: needs };
    }
    const breakdown = stagedBreakdown(prices, plan, costs.value, makespan);
    let peak = 0;
    for (let d = 0; d < needed; d++) {
      peak += peakOf(hostOf(cluster, d).accelerator, plan.precision) ?? 0;
    }
    return { ok: true, breakdown, memory: needs, peak };
  }
}

/** What a step is told from. */
interface Priced {
  readonly ok: true;
  readonly breakdown: Breakdown;
  readonly memory: Memory;
  /** Of all ranks. */
  readonly peak: number;
}

/** Prices, or that a device does not compute in the plan's precision. */
function inPrecision<T>(price: () => T, needs?: Memory): { ok: true; value: T } | Infeasible {
  try {
    return { ok: true, value: price() };
  } catch (error) {
    if (error instanceof TriremeError && error.code === "PRECISION") {
      const reason = error.message;
      return needs === undefined ? { ok: false, reason } : { ok: false, reason, memory: needs };
    }
    throw error;
  }
}

function tooManyRanks(plan: Plan, needed: number, devices: number): string {
  const product =
    plan.pipelines === undefined
      ? `tp(${plan.tp}) x dp(${plan.dp}) x pp(${plan.pp})`
      : `${plan.pipelines.length} pipelines`;
  return `${product} = ${needed} ranks, but the cluster has ${devices} devices`;
}

function total(b: Breakdown): Seconds {
  return b.compute + b.tensorParallel + b.pointToPoint + b.bubble + b.dataParallel + b.optimizer;
}

function outOfMemory(m: Memory, device: Accelerator): string {
  const parts = `weights ${formatBytes(m.weights)}, gradients ${formatBytes(m.gradients)}, optimizer ${formatBytes(m.optimizer)}, activations ${formatBytes(m.activations)}`;
  return `pipeline rank ${m.rank} needs ${formatBytes(m.total)} (${parts}), but ${device.name} has ${formatBytes(device.memory)}`;
}

function breakDown(
  model: Model,
  plan: Plan,
  cluster: Cluster,
  costs: PlanCosts,
  makespan: Makespan,
): Breakdown {
  const m = microbatches(plan);
  const layers = pipelineOf(plan, costs);
  const { vocabulary } = costs;
  const exchange =
    vocabulary === undefined
      ? 0
      : exposedExchange(plan, vocabulary, most(workByRank(layers)), longestPass(layers));
  const pipeline =
    vocabulary === undefined
      ? layers
      : { ...layers, vocabulary: vocabulary.s + vocabulary.t + exchange };
  const work = workByRank(pipeline);
  let busiest = 0;
  for (let rank = 1; rank < work.length; rank++) if (work[rank]! > work[busiest]!) busiest = rank;
  let tensorParallel = m * (vocabulary?.tensorParallel ?? 0);
  let sharding = 0;
  const { kindOf, onRank } = costs.own.list;
  for (const s of onRank[busiest]!) {
    const k = costs.kinds[kindOf[s]!]!;
    const passes = m / stageCopies(plan);
    tensorParallel += passes * (k.tensorParallelForward + k.tensorParallelBackward);
    sharding += passes * (k.shardingForward + k.shardingBackward);
  }
  const pointToPoint = m * (exposedSends(pipeline) + exchange);
  const busy = m * work[busiest]!;
  const compute = busy - tensorParallel - sharding - m * exchange;
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

function most(of: Float64Array): number {
  return of.reduce((a, b) => Math.max(a, b), 0);
}

/** The longest pass of a stage; split backwards are two. */
function longestPass({ schedule, forward, backward, weightGradient }: PipelineCosts): Seconds {
  if (schedule !== "v-half") return Math.max(most(forward), most(backward));
  const input = backward.map((b, s) => b - weightGradient[s]!);
  return Math.max(most(forward), most(input), most(weightGradient));
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
