/**
 * Where each rank of a plan stands: its place in the pipeline, and its process group along each axis.
 * Rank = device, laid out in the order of the plan's axes; routed experts lay the same ranks out anew.
 */
import { type CollectiveOperator, type Plan, expertAxes, ranks } from "@trireme/workload";

/** An axis that collectives run along; "dp" takes the context-parallel ranks in. */
export type GroupAxis = CollectiveOperator["axis"];

/** All axes that collectives run along. */
export const groupAxes: readonly GroupAxis[] = ["tp", "cp", "dp", "ep", "etp", "edp"];

/** The groups of one axis. */
export interface AxisGroups {
  /** Group of each rank. */
  readonly of: Int32Array;
  /** Members of each group, ascending. */
  readonly members: readonly Int32Array[];
}

/** Every rank of a plan. */
export interface RankLayout {
  readonly ranks: number;
  /** Pipeline ranks. */
  readonly pipeline: number;
  /** Pipeline coordinate of each rank. */
  readonly stageRank: Int32Array;
  /** Data-parallel coordinate of each rank: which samples it works on. */
  readonly replica: Int32Array;
  readonly groups: Readonly<Record<GroupAxis, AxisGroups>>;
  /** The rank with pipeline coordinate `p` and all other coordinates of `rank`. */
  along(rank: number, p: number): number;
}

/** So many ranks, so far apart. */
interface Run {
  readonly spacing: number;
  readonly size: number;
}

/** Lays out the ranks of a plan. */
export function rankLayout(plan: Plan): RankLayout {
  const count = ranks(plan);
  const runs = runsOf(plan);
  const pp = runs.get("pp")!;
  const coordinates = (run: Run): Int32Array =>
    Int32Array.from({ length: count }, (_, rank) => coordinateOf(rank, run));
  const stageRank = coordinates(pp);
  const along = (...names: string[]): AxisGroups =>
    groupsOf(
      count,
      names.map((name) => runs.get(name) ?? { spacing: 1, size: 1 }),
    );
  return {
    ranks: count,
    pipeline: plan.pp,
    stageRank,
    replica: coordinates(runs.get("dp")!),
    groups: {
      tp: along("tp"),
      cp: along("cp"),
      dp: along("cp", "dp"),
      ep: along("ep"),
      etp: along("etp"),
      edp: along("edp"),
    },
    along: (rank, p) => rank + (p - stageRank[rank]!) * pp.spacing,
  };
}

function runsOf(plan: Plan): ReadonlyMap<string, Run> {
  const runs = new Map<string, Run>();
  let spacing = 1;
  for (const name of plan.order) {
    runs.set(name, { spacing, size: plan[name] });
    spacing *= plan[name];
  }
  // Without experts the axes of theirs have one rank, and any order of the plan's will do.
  if (plan.ep * plan.etp === 1) return runs;
  spacing = 1;
  for (const { name, size } of expertAxes(plan)) {
    if (name !== "pp") runs.set(name, { spacing, size });
    spacing *= size;
  }
  return runs;
}

function coordinateOf(rank: number, { spacing, size }: Run): number {
  return Math.floor(rank / spacing) % size;
}

function groupsOf(count: number, runs: readonly Run[]): AxisGroups {
  const of = new Int32Array(count);
  const known = new Map<number, number[]>();
  const members: number[][] = [];
  const number = new Map<number, number>();
  for (let rank = 0; rank < count; rank++) {
    let first = rank;
    for (const run of runs) first -= coordinateOf(rank, run) * run.spacing;
    let list = known.get(first);
    if (list === undefined) {
      known.set(first, (list = []));
      number.set(first, members.push(list) - 1);
    }
    list.push(rank);
    of[rank] = number.get(first)!;
  }
  return { of, members: members.map((list) => Int32Array.from(list)) };
}
