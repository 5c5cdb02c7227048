/**
 * What a step costs whose pipelines differ: each plays its own microbatches, the slowest is waited for, then
 * gradients are summed. Seen from the slowest pipeline's busiest stage.
 */
import type { Accelerator, Cluster } from "@trireme/topology";
import { hostOf } from "@trireme/topology";
import { type Plan, microbatches } from "@trireme/workload";
import { exposedBuckets } from "./data-parallel.ts";
import type { Breakdown } from "./estimate.ts";
import { type Memory, type MemoryOverhead, type RankMemory, memoryOf } from "./memory.ts";
import {
  type Makespan,
  type PipelineCosts,
  exposedSends,
  pipelineFrom,
  workByRank,
} from "./pipeline-time.ts";
import type { Prices } from "./prices.ts";
import { stageList } from "./stage-list.ts";
import type { StagedPipeline, StagedStage } from "./staged-costs.ts";

/** Memory of every stage, pipeline by pipeline, and of the one with the least room; `device` is that one's. */
export function stagedMemory(
  prices: Prices,
  pipelines: readonly StagedPipeline[],
  overhead: MemoryOverhead,
): { readonly memory: Memory; readonly device: Accelerator } {
  const { model, cluster } = prices;
  const ranks: RankMemory[] = [];
  let worst: { memory: RankMemory; device: Accelerator } | undefined;
  for (const { stages } of pipelines) {
    for (const [s, stage] of stages.entries()) {
      const own = memoryOf(model, stage.plan, stageList(model, stage.plan), overhead).ranks[s]!;
      const memory = { ...own, rank: ranks.length };
      ranks.push(memory);
      const device = stage.devices
        .map((d) => hostOf(cluster, d).accelerator)
        .reduce((a, b) => (b.memory < a.memory ? b : a));
      const room = device.memory - memory.total;
      if (worst === undefined || room < worst.device.memory - worst.memory.total) {
        worst = { memory, device };
      }
    }
  }
  return { memory: { ...worst!.memory, ranks }, device: worst!.device };
}

/** The causes of the step's time. */
export function stagedBreakdown(
  prices: Prices,
  plan: Plan,
  pipelines: readonly StagedPipeline[],
  makespan: Makespan,
): Breakdown {
  const played = pipelines.map((pipeline) => {
    const costs = pipelineOf(pipeline);
    return { pipeline, costs, alone: makespan(costs) };
  });
  const slowest = played.reduce((a, b) => (b.alone > a.alone ? b : a));
  const { costs } = slowest;
  const work = workByRank(costs);
  let busiest = 0;
  for (let s = 1; s < work.length; s++) if (work[s]! > work[busiest]!) busiest = s;
  const m = costs.microbatches;
  const k = slowest.pipeline.stages[busiest]!.costs;
  const tensorParallel = m * (k.tensorParallelForward + k.tensorParallelBackward);
  const pointToPoint = m * exposedSends(costs);
  const compute = m * work[busiest]! - tensorParallel;
  const shared = sharedCores(plan, prices.cluster, pipelines);
  const stretched = compute * Math.max(1, shared / Math.max(slowest.alone, m * work[busiest]!));
  const stages = pipelines.flatMap((p) => p.stages);
  const most = (of: (stage: StagedStage) => number): number =>
    stages.reduce((n, stage) => Math.max(n, of(stage)), 0);
  const tied = pipelines.reduce((n, p) => Math.max(n, p.tied), 0);
  return {
    compute: stretched,
    tensorParallel,
    pointToPoint,
    bubble: Math.max(
      0,
      Math.max(slowest.alone, shared) - stretched - tensorParallel - pointToPoint,
    ),
    dataParallel: tied + most((stage) => exposedSync(stage)),
    optimizer: most((stage) => stage.costs.update) * crowding(prices.cluster, stages),
  };
}

function pipelineOf({ stages, pointToPoint }: StagedPipeline): PipelineCosts {
  const of = (time: (stage: StagedStage) => number): Float64Array =>
    Float64Array.from(stages, time);
  const forward = of(({ costs }) => costs.forward);
  const backward = of(({ costs }) => costs.inputGradient + costs.weightGradient + costs.recompute);
  const weightGradient = of(({ costs }) => costs.weightGradient);
  const onRank = stages.map((_, s) => [s]);
  const { plan } = stages[0]!;
  return pipelineFrom(plan, { forward, backward, weightGradient }, pointToPoint, onRank);
}

function exposedSync({ plan, costs, reduce, gather, layers }: StagedStage): number {
  const backward = costs.inputGradient + costs.weightGradient + costs.recompute;
  return exposedBuckets(plan, { reduce, gather, forward: costs.forward, backward, pieces: layers });
}

/** Devices of the plan on its first host, per core that computes at once. */
function crowding(cluster: Cluster, stages: readonly StagedStage[]): number {
  const host = hostOf(cluster, 0);
  const needed = stages.reduce((n, stage) => n + stage.devices.length, 0);
  return Math.max(1, Math.min(needed, host.accelerators) / host.concurrency);
}

/** Time the cores of a host need for the work of all its devices; 0 where each device has its own. */
function sharedCores(plan: Plan, cluster: Cluster, pipelines: readonly StagedPipeline[]): number {
  const stages = pipelines.flatMap((p) => p.stages);
  const crowd = crowding(cluster, stages);
  if (crowd === 1) return 0;
  let [all, devices] = [0, 0];
  for (const [pipeline, p] of pipelines.entries()) {
    for (const { costs, devices: own } of p.stages) {
      const each = costs.forward + costs.inputGradient + costs.weightGradient + costs.recompute;
      all += microbatches(plan, pipeline) * each * own.length;
      devices += own.length;
    }
  }
  return (crowd * all) / devices;
}
