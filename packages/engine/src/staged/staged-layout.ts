/** Where a rank stands in a plan whose pipelines differ. */
import {
  defineStagedMesh,
  stagedCoordinate,
  stagedLeaders,
  stagedTensorGroup,
} from "@trireme/topology";
import { type Model, type Plan, stagedAxes, stages } from "@trireme/workload";
import { contextPieces } from "../layout/context-pieces.ts";
import { alone } from "../parameters/spec-parts.ts";
import type { RankLayout } from "../layout/rank-layout.ts";
import { pieceSums } from "./piece-sums.ts";

/** The place of world rank `rank`; `pipeline` is its pipeline. */
export function stagedLayout(
  model: Model,
  plan: Plan,
  rank: number,
): { readonly layout: RankLayout; readonly pipeline: number } {
  const mesh = defineStagedMesh(stagedAxes(model, plan));
  const { pipeline, stage: number, shard } = stagedCoordinate(mesh, rank);
  const own = stages(model, plan, pipeline);
  const tensorRanks = stagedTensorGroup(mesh, rank);
  const batches =
    plan.pipelineBatches ?? Array.from({ length: plan.dp }, () => plan.globalBatch / plan.dp);
  const before = batches.slice(0, pipeline).reduce((a, b) => a + b, 0);
  const layout: RankLayout = {
    // Each rank sums and stores by pieces: no other holds all that it holds.
    stages: [
      {
        stage: own[number]!,
        replicas: [rank],
        expertReplicas: [rank],
        expertPeers: [rank],
        peers: tensorRanks,
      },
    ],
    depth: own.length,
    rankOfStage: stagedLeaders(mesh, rank),
    pipelineRank: number,
    shares: {
      tensor: { rank: shard, ranks: tensorRanks.length },
      expert: alone,
      expertSplit: alone,
    },
    tensorRanks,
    contextRanks: [rank],
    expertRanks: [rank],
    expertSplitRanks: [rank],
    pieces: contextPieces(plan.sequence, 0, 1, plan.contextExchange),
    samples: { start: before, count: batches[pipeline]! },
    replica: pipeline,
    context: 0,
    ties: [],
    sums: pieceSums(model, plan, rank),
  };
  return { layout, pipeline };
}
