/** Where a rank stands in a plan: its stages, its part of each layer and of the data. */
import { TriremeError } from "@trireme/core";
import type { Schedule } from "@trireme/schedulers";
import { type Mesh, coordinate, defineMesh, groupOf, rankAt } from "@trireme/topology";
import { type Model, type Plan, type Stage, expertAxes, stages } from "@trireme/workload";
import { contextPieces } from "./context-pieces.ts";
import type { ExpertShares } from "../parameters/expert-specs.ts";
import type { Share } from "../parameters/spec-parts.ts";
import type { Range } from "../memory/slice.ts";
import type { PieceSum } from "../staged/piece-sums.ts";

/** A stage on a rank, under its number in the schedule, and who else holds its weights. */
interface HeldStage {
  readonly stage: Stage;
  /** World ranks that hold the same tensors and see other data, ascending; this one among them. */
  readonly replicas: readonly number[];
  /** World ranks that hold the same routed experts. */
  readonly expertReplicas: readonly number[];
  /** World ranks that hold any part of the same routed experts. */
  readonly expertPeers: readonly number[];
  /** World ranks with any part of the same stage. */
  readonly peers: readonly number[];
}

/** The place of one rank. */
export interface RankLayout {
  readonly stages: readonly HeldStage[];
  /** Stages of the model; a schedule of two directions has each twice. */
  readonly depth: number;
  /** World rank of each stage of the schedule in this rank's pipeline. */
  readonly rankOfStage: readonly number[];
  readonly pipelineRank: number;
  /** What it holds of each tensor. */
  readonly shares: ExpertShares;
  /** World ranks of that group. */
  readonly tensorRanks: readonly number[];
  /** World ranks that share out each sample's tokens, and the tokens that are this one's. */
  readonly contextRanks: readonly number[];
  readonly pieces: readonly Range[];
  /** World ranks among which routed experts are dealt out, in order. */
  readonly expertRanks: readonly number[];
  /** World ranks that share out each routed expert, in order. */
  readonly expertSplitRanks: readonly number[];
  /** First sample of the rank's in a global batch, and how many it has. */
  readonly samples: Range;
  /** Place among data-parallel replicas. */
  readonly replica: number;
  /** Place among context-parallel ranks. */
  readonly context: number;
  /** Pairs of stages that hold the two copies of a tied table: one for each direction. */
  readonly ties: readonly { readonly embedding: number; readonly head: number }[];
  /** Where pipelines differ, what it sums with whom; left out, all it holds with its replicas. */
  readonly sums?: readonly PieceSum[];
}

/** The place of world rank `rank`. Throws `ENGINE_PLAN` where both copies of a stage meet on one rank. */
export function rankLayout(
  model: Model,
  plan: Plan,
  mesh: Mesh,
  schedule: Schedule,
  rank: number,
): RankLayout {
  const at = coordinate(mesh, rank);
  const axis = (name: string): number => mesh.axes.findIndex((a) => a.name === name);
  const pipelineRank = at[axis("pp")]!;
  const rankOfStage = schedule.stageRank.map((r) => rankAt(mesh, at.with(axis("pp"), r)));
  const modelStages = stages(model, plan);
  const depth = modelStages.length;
  const dataAxes = mesh.axes.map(({ name }) => name).filter((n) => n === "dp" || n === "cp");
  const data = groupOf(mesh, rank, dataAxes);

  const folded = defineMesh(expertAxes(plan));

  const held: HeldStage[] = [];
  schedule.stageRank.forEach((holder, number) => {
    if (holder !== pipelineRank) return;
    // A second direction runs the same layers again on other ranks.
    const copies = [number % depth, (number % depth) + depth].flatMap(
      (s) => schedule.stageRank[s] ?? [],
    );
    if (new Set(copies).size < copies.length) {
      throw new TriremeError(
        "ENGINE_PLAN",
        `${schedule.name} puts both copies of stage ${number % depth} on pipeline rank ${holder}; use an even pp`,
      );
    }
    const onCopies = (members: readonly number[]): number[] =>
      copies
        .flatMap((r) => members.map((m) => rankAt(mesh, coordinate(mesh, m).with(axis("pp"), r))))
        .toSorted((a, b) => a - b);
    held.push({
      stage: { ...modelStages[number % depth]!, stage: number },
      replicas: onCopies(data),
      expertReplicas: onCopies(groupOf(folded, rank, "edp")),
      expertPeers: onCopies(groupOf(folded, rank, ["etp", "edp"])),
      peers: onCopies(groupOf(mesh, rank, ["tp", ...dataAxes])),
    });
  });

  const samples = plan.globalBatch / plan.dp;
  const tensorRanks = groupOf(mesh, rank, "tp");
  const expertRanks = groupOf(folded, rank, "ep");
  const expertSplitRanks = groupOf(folded, rank, "etp");
  const shareOf = (members: readonly number[]): Share => ({
    rank: members.indexOf(rank),
    ranks: members.length,
  });
  const contextRanks = plan.cp === 1 ? [rank] : groupOf(mesh, rank, "cp");
  const place = contextRanks.indexOf(rank);
  const replica = at[axis("dp")]!;
  const heads = Array.from({ length: schedule.directions }, (_, d) => (d + 1) * depth - 1);
  return {
    // In the order of the model: two directions hold the same stages in another order.
    stages: held.toSorted((a, b) => (a.stage.stage % depth) - (b.stage.stage % depth)),
    depth,
    rankOfStage,
    pipelineRank,
    shares: {
      tensor: shareOf(tensorRanks),
      expert: shareOf(expertRanks),
      expertSplit: shareOf(expertSplitRanks),
    },
    tensorRanks,
    contextRanks,
    expertRanks,
    expertSplitRanks,
    pieces: contextPieces(plan.sequence, place, plan.cp, plan.contextExchange),
    samples: { start: replica * samples, count: samples },
    replica,
    context: place,
    ties:
      model.tied && depth > 1 ? heads.map((head) => ({ embedding: head - depth + 1, head })) : [],
  };
}
