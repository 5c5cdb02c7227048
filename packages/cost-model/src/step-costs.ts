/** The costs of a training step by stage and by pipeline rank: what a schedule is played with. */
import type { Bytes, Seconds } from "@trireme/core";
import { type Cluster, hostOf } from "@trireme/topology";
import {
  type Model,
  type Pass,
  type Plan,
  type Stage,
  boundaryBytes,
  bytesOf,
  stageParameters,
  stages,
} from "@trireme/workload";
import { sustainedClock } from "./characteristics.ts";
import { type Communication, communication } from "./groups.ts";
import { type Pricer, rooflinePricer } from "./pricer.ts";
import { type PricedOperator, type StageCosts, stageCosts } from "./stage-costs.ts";

/** Costs per stage are of one microbatch on one rank and contain exposed communication. */
export interface StepCosts {
  readonly forward: Float64Array;
  readonly inputGradient: Float64Array;
  readonly weightGradient: Float64Array;
  readonly recompute: Float64Array;
  /** What of the above is exposed tensor-parallel communication; backward of all three passes. */
  readonly tensorParallel: { readonly forward: Float64Array; readonly backward: Float64Array };
  /** What of the above is exposed gathering and scattering of ZeRO-3. */
  readonly sharding: { readonly forward: Float64Array; readonly backward: Float64Array };
  /** Activation that crosses a stage boundary, per rank and microbatch. */
  readonly boundary: Bytes;
  /** The time of it. */
  readonly pointToPoint: Seconds;
  /** Optimizer kernels of each pipeline rank, once per step. */
  readonly optimizer: Float64Array;
  /** Gradients that each pipeline rank reduces over its replicas, once per step. */
  readonly gradientBytes: Float64Array;
  /** Gradients of a table that first and last stage both hold, summed between them once per step; 0 otherwise. */
  readonly sharedBytes: Bytes;
  readonly communication: Communication;
  /** The kernels of one pass of a stage in order, with their times: what spans are drawn from. */
  operators(stage: number, pass: Pass): readonly PricedOperator[];
}

/** What a step is priced from; without a pricer, by the roofline of the cluster's first device. */
export interface StepOptions {
  readonly model: Model;
  readonly plan: Plan;
  readonly cluster: Cluster;
  readonly pricer?: Pricer;
}

/** Prices every stage of a plan; stages that compute the same are priced once. */
export function stepCosts(o: StepOptions): StepCosts {
  const { model, plan, cluster } = o;
  const device = hostOf(cluster, 0).accelerator;
  const pricer =
    o.pricer ?? rooflinePricer(device, plan.precision, { clock: sustainedClock(device) });
  const network = communication(cluster, plan);
  const list = stages(model, plan);
  const known = new Map<string, StageCosts>();
  const costs = list.map((s) => {
    const key = `${s.layers} ${s.embedding} ${s.head}`;
    const found = known.get(key);
    if (found !== undefined) return found;
    const made = stageCosts(model, plan, s, pricer, network);
    known.set(key, made);
    return made;
  });
  const of = (pick: (c: StageCosts) => number): Float64Array => Float64Array.from(costs, pick);
  const boundary = plan.pp > 1 ? boundaryBytes(model, plan) : 0;
  const shared = model.tied && list.length > 1;
  return {
    forward: of((c) => c.forward),
    inputGradient: of((c) => c.inputGradient),
    weightGradient: of((c) => c.weightGradient),
    recompute: of((c) => c.recompute),
    tensorParallel: {
      forward: of((c) => c.tensorParallel.forward),
      backward: of((c) => c.tensorParallel.backward),
    },
    sharding: { forward: of((c) => c.sharding.forward), backward: of((c) => c.sharding.backward) },
    boundary,
    pointToPoint: network.send(boundary) + regather(plan, boundary, network),
    optimizer: perRank(plan, list, (_, i) => costs[i]!.update),
    gradientBytes: perRank(
      plan,
      list,
      (s) => stageParameters(model, plan, s).total * bytesOf(plan.gradientPrecision),
    ),
    sharedBytes: shared ? tableBytes(model, plan) : 0,
    communication: network,
    operators: (stage, pass) => costs[stage]!.priced.filter((x) => x.operator.pass === pass),
  };
}

/** Scatter/gather puts the boundary together again among the tensor-parallel ranks that receive it. */
function regather(plan: Plan, boundary: Bytes, network: Communication): Seconds {
  if (!plan.scatterGather || plan.sequenceParallel) return 0;
  return network.collective("all-gather", "tp", boundary * plan.tp);
}

/** Sums something over the stages of each pipeline rank. */
function perRank(
  plan: Plan,
  list: readonly Stage[],
  value: (s: Stage, i: number) => number,
): Float64Array {
  const sums = new Float64Array(plan.pp);
  for (const [i, s] of list.entries()) sums[i % plan.pp] = sums[i % plan.pp]! + value(s, i);
  return sums;
}

function tableBytes(model: Model, plan: Plan): Bytes {
  return Math.ceil(model.vocab / plan.tp) * model.hidden * bytesOf(plan.gradientPrecision);
}
