/** A step ready to be played, whatever its pipelines, and what is asked of every such step. */
import { TriremeError } from "@trireme/core";
import type { Memory } from "@trireme/cost-model";
import { type Accelerator, type Cluster, hostIndex, hostOf, peakOf } from "@trireme/topology";
import { type Plan, ranks } from "@trireme/workload";
import type { PlayOptions } from "../program/play-options.ts";
import type { Program } from "../program/program.ts";
import type { SimulatedRanks } from "./fold.ts";

/** A step ready to be played. */
export interface PlayableStep {
  readonly ranks: Pick<SimulatedRanks, "count" | "rankOf" | "standIn" | "weight">;
  readonly program: Program;
  readonly play: PlayOptions;
  /** Whether some ranks stand for others. */
  readonly folded: boolean;
  readonly memory: Memory;
  /** The device that has the least room. */
  readonly device: Accelerator;
}

/**
 * Throws TriremeError "PLAN" or "PRECISION" where the cluster is too small or cannot compute so, or the vocabulary is
 * split over the stages.
 */
export function check(plan: Plan, cluster: Cluster): void {
  if (plan.vocabulary !== undefined) {
    throw new TriremeError(
      "PLAN",
      `steps with vocabulary ${plan.vocabulary} are not played; estimate them, or leave it out`,
    );
  }
  const needed = ranks(plan);
  if (needed > cluster.devices) {
    const cp = plan.cp > 1 ? ` x cp(${plan.cp})` : "";
    const degrees =
      plan.pipelines === undefined
        ? `tp(${plan.tp})${cp} x dp(${plan.dp}) x pp(${plan.pp})`
        : `the widths of ${plan.dp} pipelines' stages`;
    throw new TriremeError(
      "PLAN",
      `${degrees} = ${needed} ranks, but the cluster has ${cluster.devices} devices`,
    );
  }
  const device = hostOf(cluster, 0).accelerator;
  if (peakOf(device, plan.precision) === undefined) {
    throw new TriremeError(
      "PRECISION",
      `${device.name} has no ${plan.precision} arithmetic; use ${Object.keys(device.peak).join(" or ")}`,
    );
  }
}

/** Speeds of simulated ranks; throws TriremeError "SPEED" for one that is none. */
export function speeds(speed: (rank: number) => number, rankOf: Int32Array): Float64Array {
  return Float64Array.from(rankOf, (rank) => {
    const own = speed(rank);
    if (own > 0 && own < Infinity) return own;
    throw new TriremeError("SPEED", `speed ${own} of rank ${rank}: give a finite number above 0`);
  });
}

/** Hosts with more ranks than cores, and their ranks. */
export function sharedHosts(cluster: Cluster, plan: Plan): NonNullable<PlayOptions["shared"]> {
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
