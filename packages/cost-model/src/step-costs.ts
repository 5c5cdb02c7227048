/** The costs of a training step by stage and by pipeline rank: what a schedule is played with. */
import type { Bytes, Seconds } from "@trireme/core";
import type { Cluster } from "@trireme/topology";
import { type Model, type Operator, type Pass, type Plan, stageOperators } from "@trireme/workload";
import type { Communication } from "./groups.ts";
import { type KindCosts, type PlanCosts, planCosts, sumOnRank } from "./plan-costs.ts";
import type { Pricer } from "./pricer.ts";
import { type PlanPrices, Prices } from "./prices.ts";
import type { StageList } from "./stage-list.ts";
import type { VocabularyCosts } from "./vocabulary-costs.ts";

/** An operator of a pass with its time. */
export interface PricedOperator {
  readonly operator: Operator;
  /** One execution. */
  readonly seconds: Seconds;
}

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
  /** The same of routed experts, over the replicas of theirs. */
  readonly expertGradientBytes: Float64Array;
  /** Gradients of a table that first and last stage both hold, summed between them once per step; 0 otherwise. */
  readonly sharedBytes: Bytes;
  /** Passes over a vocabulary that is split over the pipeline ranks; the stages' costs are without them. */
  readonly vocabulary?: VocabularyCosts;
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
  /** See `EstimatorOptions`. */
  readonly expertLoad?: number;
}

/** Prices every stage of a plan; stages that compute the same are priced once. */
export function stepCosts(o: StepOptions): StepCosts {
  return stepCostsOf(o, planCosts(new Prices(o), o.plan));
}

/** The same as arrays, from what was priced by kind. */
function stepCostsOf(o: StepOptions, costs: PlanCosts): StepCosts {
  const { kinds } = costs;
  const { kindOf } = costs.own.list;
  return {
    forward: perStage(kinds, kindOf, "forward"),
    inputGradient: perStage(kinds, kindOf, "inputGradient"),
    weightGradient: perStage(kinds, kindOf, "weightGradient"),
    recompute: perStage(kinds, kindOf, "recompute"),
    tensorParallel: {
      forward: perStage(kinds, kindOf, "tensorParallelForward"),
      backward: perStage(kinds, kindOf, "tensorParallelBackward"),
    },
    sharding: {
      forward: perStage(kinds, kindOf, "shardingForward"),
      backward: perStage(kinds, kindOf, "shardingBackward"),
    },
    boundary: costs.boundary,
    pointToPoint: costs.pointToPoint,
    optimizer: perRank(kinds, costs.own.list, "update"),
    gradientBytes: perRank(kinds, costs.own.list, "gradientBytes"),
    expertGradientBytes: perRank(kinds, costs.own.list, "expertGradientBytes"),
    sharedBytes: costs.sharedBytes,
    ...(costs.vocabulary === undefined ? {} : { vocabulary: costs.vocabulary }),
    communication: costs.own.communication,
    operators: kernels(o.model, o.plan, costs.own),
  };
}

function perStage(
  kinds: readonly KindCosts[],
  kindOf: Uint32Array,
  field: keyof KindCosts,
): Float64Array {
  const values = new Float64Array(kindOf.length);
  for (let s = 0; s < values.length; s++) values[s] = kinds[kindOf[s]!]![field];
  return values;
}

function perRank(
  kinds: readonly KindCosts[],
  list: StageList,
  field: keyof KindCosts,
): Float64Array {
  const ranks = list.onRank.length;
  const sums = new Float64Array(ranks);
  for (let rank = 0; rank < ranks; rank++) {
    sums[rank] = sumOnRank(kinds, list, rank, field);
  }
  return sums;
}

/** The kernels of stages with their times, looked up when asked for. */
export function kernels(m: Model, p: Plan, own: PlanPrices): StepCosts["operators"] {
  const known = new Map<number, readonly PricedOperator[]>();
  return (stage, pass) => {
    const kind = own.list.kindOf[stage]!;
    let priced = known.get(kind);
    if (priced === undefined) {
      priced = stageOperators(m, p, own.list.kinds[kind]!).operators.map((operator) => ({
        operator,
        seconds: own.pricer.operator(operator),
      }));
      known.set(kind, priced);
    }
    return priced.filter((x) => x.operator.pass === pass);
  };
}
