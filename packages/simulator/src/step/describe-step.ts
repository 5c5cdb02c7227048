/** From a plan on a cluster to a step in numbers: the cost model's times, laid out by stage. */
import { type Pricer, type StepCosts, stepCosts } from "@trireme/cost-model";
import { collectiveTime } from "@trireme/collectives";
import { type Seconds, TriremeError } from "@trireme/core";
import { createSchedule, lower } from "@trireme/schedulers";
import type { Lane } from "@trireme/timeline";
import { type Cluster, hostIndex, hostOf, linkBetween } from "@trireme/topology";
import {
  type CollectiveOperator,
  type Model,
  type Plan,
  microbatches,
  stageOperators,
  stages,
} from "@trireme/workload";
import type { SimulatedRanks } from "./fold.ts";
import { type GroupAxis, type RankLayout, groupAxes } from "./rank-layout.ts";
import { type Lanes, amongReplicas, stageParts } from "./stage-parts.ts";
import type {
  StepDescription,
  SyncCosts,
  TimedCollective,
  Transfer,
  Variation,
} from "./step-description.ts";

/** What a step is described from; without a pricer, by the roofline of the cluster's first device. */
export interface PricedPlan {
  readonly model: Model;
  readonly plan: Plan;
  readonly cluster: Cluster;
  readonly pricer?: Pricer;
}

/** A plan, the ranks of it that are simulated, and what varies. */
export interface DescribeOptions extends PricedPlan {
  readonly layout: RankLayout;
  readonly ranks: SimulatedRanks;
  /** Whether the spans of computing are kernels instead of whole parts of actions. */
  readonly operators?: boolean;
  /** Multiprocessors that a hidden collective keeps from computing; see `SimulateOptions`. */
  readonly communicationMultiprocessors?: number;
  readonly loading?: (rank: number) => Seconds;
  readonly variation?: Variation;
}

/** The step of a plan. */
export function describeStep(o: DescribeOptions): StepDescription {
  const { model, plan, cluster, layout } = o;
  const costs = stepCosts(o);
  // Schedules that have two chunks by their nature say so themselves.
  const chunks = plan.vpp > 1 ? { chunks: plan.vpp } : {};
  const shape = { ranks: plan.pp, ...chunks, microbatches: microbatches(plan) };
  const schedule = lower(createSchedule(plan.schedule, shape));
  const lanes = axisLanes(layout, cluster);
  const list = stages(model, plan);
  const chain = schedule.stages / schedule.directions;
  const collectives = list.map((stage) => stageOperators(model, plan, stage).collectives);
  const byStage = list.map(({ stage }) =>
    stageParts({
      costs,
      stage,
      collectives: collectives[stage]!,
      lanes,
      operators: o.operators === true,
      ...contentionOf(o),
    }),
  );
  const modelStage = Array.from({ length: schedule.stages }, (_, stage) => stage % chain);
  const regather = Math.max(0, costs.pointToPoint - costs.communication.send(costs.boundary));
  return {
    schedule,
    ranks: o.ranks,
    parts: modelStage.map((stage) => byStage[stage]!),
    layers: modelStage.map((stage) => Math.max(1, list[stage]!.layers)),
    transfer: transfers(cluster, costs.boundary, regather),
    blockingSends: !plan.overlapPointToPoint,
    sync: syncCosts(o, costs, collectives, lanes, schedule),
    ...(o.loading === undefined ? {} : { loading: o.loading }),
    ...(o.variation === undefined ? {} : { variation: o.variation }),
  };
}

/** The fraction of the device that the option leaves to communication. */
function contentionOf(o: DescribeOptions): { readonly contention?: number } {
  const { communicationMultiprocessors: budget, cluster } = o;
  if (budget === undefined) return {};
  const { name, multiprocessors } = hostOf(cluster, 0).accelerator;
  if (!(budget >= 0 && budget < multiprocessors)) {
    throw new TriremeError(
      "BUDGET",
      `communicationMultiprocessors ${budget}: ${name} has ${multiprocessors}; leave some to computing`,
    );
  }
  return { contention: budget / multiprocessors };
}

/** Where the group of rank 0 along each axis lies stands for all. */
function axisLanes(layout: RankLayout, cluster: Cluster): Lanes {
  const lane = (axis: GroupAxis): Lane => laneOf(cluster, layout.groups[axis].members[0]!);
  const [tp, cp, dp, ep, etp, edp] = groupAxes.map(lane);
  return { tp: tp!, cp: cp!, dp: dp!, ep: ep!, etp: etp!, edp: edp! };
}

/** Communication among devices of one host runs on the lane "intra", any other on "inter". */
export function laneOf(cluster: Cluster, devices: ArrayLike<number>): Lane {
  const host = hostIndex(cluster, devices[0]!);
  for (let i = 1; i < devices.length; i++) {
    if (hostIndex(cluster, devices[i]!) !== host) return "inter";
  }
  return "intra";
}

/**
 * The time on the sender's way out is the message's without the latency of the link; where a boundary
 * travels in parts, putting it together again comes on top of the latency. Equal links share one object.
 */
export function transfers(
  cluster: Cluster,
  bytes: number,
  regather: Seconds,
): (from: number, to: number) => Transfer {
  const known = new Map<string, Transfer>();
  return (from, to) => {
    const link = linkBetween(cluster, from, to);
    const lane = laneOf(cluster, [from, to]);
    const key = `${lane} ${link.kind} ${link.bandwidth} ${link.latency}`;
    let transfer = known.get(key);
    if (transfer === undefined) {
      const time = collectiveTime({ operation: "send", bytes, cluster, ranks: [from, to] });
      const latency = Math.min(time, link.latency);
      transfer = { duration: time - latency, latency: latency + regather, bytes, lane };
      known.set(key, transfer);
    }
    return transfer;
  };
}

function syncCosts(
  o: DescribeOptions,
  costs: StepCosts,
  collectives: readonly (readonly CollectiveOperator[])[],
  lanes: Lanes,
  schedule: StepDescription["schedule"],
): SyncCosts {
  const { model, plan, cluster, layout } = o;
  const { communication } = costs;
  const overlap = plan.overlapDataParallel;
  const list = stages(model, plan);
  const chain = schedule.stages / schedule.directions;
  // Buckets of a layer each: smaller ones would be all latency, larger ones hide less.
  const pieces = list.map((stage) => (overlap ? Math.max(1, stage.layers) : 1));
  const once = (wanted: (c: CollectiveOperator) => boolean): TimedCollective[][] => {
    const byStage = collectives.map((each, stage) =>
      each
        .filter((c) => c.pass === "update" && wanted(c))
        .map((c) => {
          const bytes = (c.bytes * c.count) / (amongReplicas(c) ? pieces[stage]! : 1);
          const duration = communication.collective(c.kind, c.axis, bytes);
          return { kind: c.kind, axis: c.axis, lane: lanes[c.axis], bytes, duration };
        }),
    );
    return Array.from({ length: schedule.stages }, (_, stage) => byStage[stage % chain]!);
  };
  const between = (p: number, q: number, bytes: number): Omit<TimedCollective, "axis"> => {
    const ranks = [layout.along(0, p), layout.along(0, q)];
    const duration = collectiveTime({ operation: "all-reduce", bytes, cluster, ranks });
    return { kind: "all-reduce", lane: laneOf(cluster, ranks), bytes, duration };
  };
  const gradients = (stage: number): number => {
    const p = stage % plan.pp;
    const share = list.filter((s) => s.stage % plan.pp === p).length;
    return (costs.gradientBytes[p]! + costs.expertGradientBytes[p]!) / share;
  };
  const mirror = Array.from({ length: schedule.stages }, (_, stage) => {
    if (schedule.directions === 1) return undefined;
    const own = schedule.stageRank[stage]!;
    const other = schedule.stageRank[(stage + chain) % schedule.stages]!;
    // The middle one of an odd number of ranks holds both copies, and sums them where they are.
    return own === other ? undefined : between(own, other, gradients(stage % chain));
  });
  const [head, tail] = [schedule.stageRank[0]!, schedule.stageRank[chain - 1]!];
  return {
    overlap,
    reduce: once((c) => amongReplicas(c) && c.kind !== "all-gather"),
    gather: once((c) => amongReplicas(c) && c.kind === "all-gather"),
    common: once((c) => !amongReplicas(c)),
    mirror,
    optimizer: updates(costs, schedule),
    optimizerLane: plan.offload === "optimizer" ? "host" : "compute",
    ...(costs.sharedBytes > 0 && head !== tail
      ? { tied: between(head, tail, costs.sharedBytes) }
      : {}),
  };
}

/**
 * Time of the optimizer on each pipeline rank: of all stages that it holds. The cost model sums them
 * for stages dealt out in turn; where a schedule places them otherwise, their kernels are summed here.
 */
function updates(costs: StepCosts, schedule: StepDescription["schedule"]): Float64Array {
  const { stages: count, directions, stageRank, ranks } = schedule;
  if (stageRank.every((p, stage) => p === stage % ranks)) return costs.optimizer;
  const sums = new Float64Array(ranks);
  for (let stage = 0; stage < count; stage++) {
    for (const { operator, seconds } of costs.operators(stage % (count / directions), "update")) {
      sums[stageRank[stage]!]! += operator.count * seconds;
    }
  }
  return sums;
}
