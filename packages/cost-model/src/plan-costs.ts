/** The costs of a plan by kind of stage: as many numbers as there are different stages. */
import type { Bytes, Seconds } from "@trireme/core";
import {
  type Model,
  type Plan,
  type Stage,
  boundaryBytes,
  bytesOf,
  expertReplicas,
  reducedBytes,
  replicaCollectives,
} from "@trireme/workload";
import type { Communication } from "./groups.ts";
import { type PlanPrices, type Prices, parametersOf, stageOf } from "./prices.ts";
import { shapeKey } from "./shape-key.ts";
import { type VocabularyCosts, vocabularyCosts } from "./vocabulary-costs.ts";
import { shardingCosts } from "./stage-costs.ts";
import type { StageList } from "./stage-list.ts";

/** One microbatch through a stage of one kind, exposed communication included; and its once per step. */
export interface KindCosts {
  readonly forward: Seconds;
  readonly recompute: Seconds;
  readonly inputGradient: Seconds;
  readonly weightGradient: Seconds;
  readonly tensorParallelForward: Seconds;
  readonly tensorParallelBackward: Seconds;
  readonly shardingForward: Seconds;
  readonly shardingBackward: Seconds;
  readonly update: Seconds;
  /** Of dense parameters. */
  readonly gradientBytes: Bytes;
  /** Of routed experts. */
  readonly expertGradientBytes: Bytes;
}

/** The costs of one plan. */
export interface PlanCosts {
  readonly own: PlanPrices;
  /** By kind of stage. */
  readonly kinds: readonly KindCosts[];
  /** See `StepCosts`. */
  readonly boundary: Bytes;
  readonly pointToPoint: Seconds;
  readonly sharedBytes: Bytes;
  /** Where the vocabulary is split over the pipeline ranks; stages are priced without it. */
  readonly vocabulary?: VocabularyCosts;
}

/** Prices a plan. */
export function planCosts(prices: Prices, plan: Plan, key: string = shapeKey(plan)): PlanCosts {
  const { model } = prices;
  const own = prices.of(plan, key);
  const { list, communication } = own;
  const kinds: KindCosts[] = [];
  for (const s of list.kinds) kinds.push(kindCosts(plan, s, own));
  const boundary = plan.pp > 1 ? boundaryBytes(model, plan) : 0;
  const vocabulary = vocabularyCosts(own);
  const trained = model.tied && model.adapter === undefined;
  const shared = trained && list.stages.length > 1 && vocabulary === undefined;
  return {
    own,
    kinds,
    boundary,
    pointToPoint: communication.send(boundary) + regather(plan, boundary, communication),
    sharedBytes: shared ? tableBytes(model, plan) : 0,
    ...(vocabulary === undefined ? {} : { vocabulary }),
  };
}

/** The sum of a cost over the stages of a pipeline rank, in model order. */
export function sumOnRank(
  kinds: readonly KindCosts[],
  { kindOf, onRank }: StageList,
  rank: number,
  field: keyof KindCosts,
): number {
  let sum = 0;
  for (const s of onRank[rank]!) sum += kinds[kindOf[s]!]![field];
  return sum;
}

/** One stage of a plan, from its prices. */
export function kindCosts(p: Plan, s: Stage, own: PlanPrices): KindCosts {
  const { vocabulary: _, ...layers } = s;
  const costs = stageOf(own, layers);
  const { compute, exposed } = costs;
  const { blocks } = own.shape;
  const held = parametersOf(own, s);
  const replicas = p.zero === 3 ? replicaCollectives(p, held) : [];
  const sharding = shardingCosts(p, s, costs, replicas, own.communication);
  const dense = held.trainable - held.trainableExperts;
  const updated = share(p, dense, p.dp * p.cp) + share(p, held.trainableExperts, expertReplicas(p));
  return {
    forward: compute.forward + exposed.forward + sharding.forward,
    recompute: compute.recompute + exposed.recompute,
    inputGradient: compute["input-gradient"] + exposed["input-gradient"] + sharding.backward,
    weightGradient: compute["weight-gradient"] + exposed["weight-gradient"],
    tensorParallelForward: exposed.forward,
    tensorParallelBackward:
      exposed.recompute + exposed["input-gradient"] + exposed["weight-gradient"],
    shardingForward: sharding.forward,
    shardingBackward: sharding.backward,
    update: updated > 0 ? blocks.update.seconds(updated) : 0,
    gradientBytes: dense * reducedBytes(p),
    expertGradientBytes: held.trainableExperts * reducedBytes(p),
  };
}

/** ZeRO leaves each of `replicas` the update of its share of `n` parameters. */
function share(p: Plan, n: number, replicas: number): number {
  return p.zero >= 1 ? Math.ceil(n / replicas) : n;
}

/** Scatter/gather puts the boundary together again among the tensor-parallel ranks that receive it. */
function regather(plan: Plan, boundary: Bytes, network: Communication): Seconds {
  if (!plan.scatterGather || plan.sequenceParallel) return 0;
  return network.collective("all-gather", "tp", boundary * plan.tp);
}

function tableBytes(model: Model, plan: Plan): Bytes {
  return Math.ceil(model.vocab / plan.tp) * model.hidden * bytesOf(plan.gradientPrecision);
}
