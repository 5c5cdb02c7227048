/** From a plan on a cluster to a step in numbers: the cost model's times, laid out by stage. */
import { type Pricer, type StepCosts, stepCosts } from "@trireme/cost-model";
import { collectiveTime } from "@trireme/collectives";
import { createSchedule, lower } from "@trireme/schedulers";
import type { Lane } from "@trireme/timeline";
import { type Cluster, hostIndex, linkBetween } from "@trireme/topology";
import {
  type CollectiveOperator,
  type Model,
  type Plan,
  microbatches,
  stageOperators,
  stages,
} from "@trireme/workload";
import { stageParts } from "./stage-parts.ts";
import type { StepDescription, SyncCosts, TimedCollective, Transfer } from "./step-description.ts";

/** What a step is described from; without a pricer, by the roofline of the cluster's first device. */
export interface SimulateOptions {
  readonly model: Model;
  readonly plan: Plan;
  readonly cluster: Cluster;
  readonly pricer?: Pricer;
}

/** Which ranks are simulated: number of tensor- and data-parallel ranks, and the device of each rank. */
export interface Fold {
  readonly tp: number;
  readonly dp: number;
  readonly device: (rank: number) => number;
}

/** The step of a plan. */
export function describeStep(o: SimulateOptions, fold: Fold): StepDescription {
  const { model, plan, cluster } = o;
  const costs = stepCosts(o);
  const shape = { ranks: plan.pp, chunks: plan.vpp, microbatches: microbatches(plan) };
  const lanes = {
    tp: laneOf(
      cluster,
      Array.from({ length: plan.tp }, (_, t) => t),
    ),
    dp: laneOf(
      cluster,
      Array.from({ length: plan.dp }, (_, d) => d * plan.tp),
    ),
  };
  const list = stages(model, plan);
  const collectives = list.map((stage) => stageOperators(model, plan, stage).collectives);
  return {
    schedule: lower(createSchedule(plan.schedule, shape)),
    tp: fold.tp,
    dp: fold.dp,
    parts: list.map(({ stage }) => stageParts(costs, stage, collectives[stage]!, lanes)),
    transfer: transfers(cluster, costs.boundary, fold.device),
    blockingSends: !plan.overlapPointToPoint,
    sync: syncCosts(o, costs, collectives, lanes),
  };
}

/** Communication among devices of one host runs on the lane "intra", any other on "inter". */
function laneOf(cluster: Cluster, devices: readonly number[]): Lane {
  const host = hostIndex(cluster, devices[0]!);
  return devices.every((device) => hostIndex(cluster, device) === host) ? "intra" : "inter";
}

/** The time on the sender's way out is the message's without the latency of the link. */
function transfers(
  cluster: Cluster,
  bytes: number,
  device: (rank: number) => number,
): (from: number, to: number) => Transfer {
  const known = new Map<string, Transfer>();
  return (from, to) => {
    const [a, b] = [device(from), device(to)];
    const key = `${a} ${b}`;
    let transfer = known.get(key);
    if (transfer === undefined) {
      const time = collectiveTime({ operation: "send", bytes, cluster, ranks: [a, b] });
      const latency = Math.min(time, linkBetween(cluster, a, b).latency);
      transfer = { duration: time - latency, latency, bytes, lane: laneOf(cluster, [a, b]) };
      known.set(key, transfer);
    }
    return transfer;
  };
}

function syncCosts(
  o: SimulateOptions,
  costs: StepCosts,
  collectives: readonly (readonly CollectiveOperator[])[],
  lanes: Readonly<Record<"tp" | "dp", Lane>>,
): SyncCosts {
  const { model, plan, cluster } = o;
  const { communication } = costs;
  const overlap = plan.overlapDataParallel;
  // Buckets of a layer each: smaller ones would be all latency, larger ones hide less.
  const pieces = stages(model, plan).map((stage) => (overlap ? Math.max(1, stage.layers) : 1));
  const once = (
    axis: "tp" | "dp",
    wanted: (kind: CollectiveOperator["kind"]) => boolean,
  ): (TimedCollective | undefined)[] =>
    collectives.map((list, stage) => {
      const found = list.find((c) => c.axis === axis && c.pass === "update" && wanted(c.kind));
      if (found === undefined) return undefined;
      const bytes = (found.bytes * found.count) / (axis === "dp" ? pieces[stage]! : 1);
      const duration = communication.collective(found.kind, axis, bytes);
      return { kind: found.kind, lane: lanes[axis], bytes, duration };
    });
  const ends = [0, plan.tp * plan.dp * (plan.pp - 1)];
  return {
    overlap,
    pieces,
    reduce: once("dp", (kind) => kind !== "all-gather"),
    gather: once("dp", (kind) => kind === "all-gather"),
    common: once("tp", () => true),
    optimizer: costs.optimizer,
    ...(costs.sharedBytes > 0 && plan.pp > 1
      ? {
          tied: {
            kind: "all-reduce",
            lane: laneOf(cluster, ends),
            bytes: costs.sharedBytes,
            duration: communication.firstAndLast(costs.sharedBytes),
          },
        }
      : {}),
  };
}
