/**
 * Parts of samples dealt to the encoders of all ranks, apart from the samples they belong to: the
 * hybrid level of balancing. A batch even for the backbone is uneven for the encoders, and the other
 * way round; embeddings are small, so a part may be encoded far from where it is used.
 */
import { type BalanceMethod, distribute, imbalanceOf } from "../distribution.ts";
import { type DataGraph, dataGraph, extendGraph } from "./data-graph.ts";
import type { LoadProgramSpec } from "./load-program-spec.ts";
import type { EncoderDeal } from "./loading-plan.ts";
import type { EncoderModality, SampleCosts } from "./sample-costs.ts";

const modalities: readonly EncoderModality[] = ["image", "video", "audio"];

/** A deal and the lineage of its parts. */
export interface DealtEncoder {
  readonly deal: EncoderDeal;
  readonly graph: DataGraph;
}

/** The deals of the modalities that occur. With method "order" each part stays on its sample's share. */
export function dealEncoders(
  { tree, method }: LoadProgramSpec,
  costs: readonly SampleCosts[],
  shareOf: Int32Array,
): readonly DealtEncoder[] {
  const ranksOfShare = Array.from({ length: tree.shares }, (): number[] => []);
  for (const { rank, share } of tree.places) ranksOfShare[share]!.push(rank);
  return modalities.flatMap((modality): DealtEncoder[] => {
    const sampleOf: number[] = [];
    const partOf: number[] = [];
    const work: number[] = [];
    costs.forEach(({ parts }, sample) => {
      parts
        .filter((part) => part.modality === modality)
        .forEach(({ cost }, k) => {
          sampleOf.push(sample);
          partOf.push(k);
          work.push(cost);
        });
    });
    if (work.length === 0) return [];
    const rankOf = ranksOf(method, work, tree.ranks, (part) => {
      const ranks = ranksOfShare[shareOf[sampleOf[part]!]!]!;
      return ranks[part % ranks.length]!;
    });
    const loads = new Float64Array(tree.ranks);
    let moved = 0;
    rankOf.forEach((rank, part) => {
      loads[rank]! += work[part]!;
      if (tree.places[rank]!.share !== shareOf[sampleOf[part]!]) moved++;
    });
    const partsOfRank = Array.from({ length: tree.ranks }, (): number[] => []);
    rankOf.forEach((rank, part) => partsOfRank[rank]!.push(part));
    let graph = dataGraph(modality, "sample", costs.length);
    graph = extendGraph(
      graph,
      "part",
      sampleOf.map((sample) => [sample]),
    );
    graph = extendGraph(graph, "rank", partsOfRank);
    const deal: EncoderDeal = {
      modality,
      sampleOf: Int32Array.from(sampleOf),
      partOf: Int32Array.from(partOf),
      rankOf,
      loads,
      imbalance: imbalanceOf(loads),
      moved,
    };
    return [{ deal, graph }];
  });
}

function ranksOf(
  method: BalanceMethod,
  costs: readonly number[],
  ranks: number,
  home: (part: number) => number,
): Int32Array {
  if (method === "order") return Int32Array.from(costs, (_, part) => home(part));
  return distribute({ costs, ranks, microbatches: 1, method, equalCounts: false }).rankOf;
}
