/** The weights of a rank's stages, and with whom each part of them is shared, summed and gathered. */
import type { Communicator } from "@trireme/collectives";
import type { CommunicatorGroups } from "../layout/communicator-groups.ts";
import type { CorruptionWatch } from "../tape/corruption-watch.ts";
import { type DelayedScaling, besideMaxima } from "../weights/delayed-scaling.ts";
import { stageParameters } from "../parameters/parameter-specs.ts";
import type { RankOptions } from "./rank.ts";
import { StageWeights } from "../weights/stage-weights.ts";
import { sectionNames } from "../stage/transformer.ts";
import type { WeightWork } from "../weights/weight-work.ts";

/** What a rank gives of itself for its weights. */
export interface RankWeightsOptions extends Pick<
  RankOptions,
  "model" | "plan" | "place" | "pool" | "kernels" | "host" | "seed" | "rehearse"
> {
  /** The tensor-parallel ranks; undefined when there is one. */
  readonly tensor: Communicator | undefined;
  readonly groups: CommunicatorGroups;
  /** The group in which ranks come to the same stage together. */
  readonly groupOf: (members: readonly number[]) => Communicator;
  readonly weightWork: WeightWork;
  readonly watch: CorruptionWatch | undefined;
  readonly delayed: DelayedScaling | undefined;
}

/** By stage of the schedule, in the order of the model. */
export function rankWeights(o: RankWeightsOptions): ReadonlyMap<number, StageWeights> {
  const { model, plan, pool, seed, tensor, groups, groupOf, weightWork, watch, delayed } = o;
  const { layout, schedule } = o.place;
  const { shares } = layout;
  // Ranks that sleep do not come by the sections of their stages, and those of two directions not together.
  const bySection = plan.zero >= 2 && o.rehearse === undefined && schedule.directions === 1;
  // In stages that differ in width masters are what is used.
  const narrow = plan.precision === "bf16" && o.rehearse === undefined && layout.sums === undefined;
  return new Map(
    layout.stages.map(({ stage, replicas, expertReplicas, peers, expertPeers }) => {
      const specs = stageParameters(model, stage, shares);
      const weights = new StageWeights({
        pool,
        kernels: o.kernels,
        host: o.host,
        base: model.adapter?.base,
        isFirstOfExpert: shares.expertSplit.rank === 0,
        gradientBytes: plan.gradientPrecision === "bf16" ? 2 : 4,
        reducedBytes: (plan.reductionPrecision ?? plan.gradientPrecision) === "bf16" ? 2 : 4,
        narrow,
        wholeSums: plan.gradientExchange === "all-reduce",
        seed,
        specs: delayed === undefined ? specs : besideMaxima(specs),
        replicas: groupOf(replicas),
        expertReplicas: groupOf(expertReplicas),
        peers: groupOf(peers),
        expertPeers: groupOf(expertPeers),
        expertSplit: plan.etp === 1 ? undefined : groups.of(layout.expertSplitRanks),
        zero: plan.zero,
        tensor,
        sequenceParallel: plan.sequenceParallel,
        tableIsCopy: stage.head && !stage.embedding,
        staged: layout.sums && { sums: layout.sums, groupOf, isCopy: layout.replica > 0 },
        sections: bySection
          ? {
              names: sectionNames(model, stage),
              watch,
              follow: (kind, bytes, begin) => weightWork.follow(kind, stage.stage, bytes, begin),
            }
          : undefined,
      });
      delayed?.add(pool.memory, weights);
      return [stage.stage, weights];
    }),
  );
}
