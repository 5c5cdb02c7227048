/** What the planner decides of a step: metadata only, small enough to be sent to every host. */
import { TriremeError } from "@trireme/core";
import type { PlaceTree } from "../place-tree.ts";
import type { DataGraph } from "./data-graph.ts";
import type { EncoderModality } from "./sample-costs.ts";

/** The samples of one step, and where each goes. */
export interface LoadingPlan {
  readonly step: number;
  /** Source of each sample, in global order. */
  readonly sources: Int32Array;
  /** Position of each sample in its source's own order. */
  readonly positions: Float64Array;
  /** Tokens of each sample in the backbone. */
  readonly tokens: Float64Array;
  readonly shares: number;
  readonly microbatches: number;
  /** Share of the batch that each sample is in: which data constructor builds it. */
  readonly shareOf: Int32Array;
  readonly microbatchOf: Int32Array;
  /** Backbone work of each microbatch. [shares, microbatches] */
  readonly loads: Float64Array;
  /** Backbone work of the busiest share over the mean, at least 1. */
  readonly imbalance: number;
  /** Who reads from a constructor and who gets it from another rank. */
  readonly deliveries: readonly Delivery[];
  /** Parts dealt to encoders of their own; [] unless balancing is "hybrid". */
  readonly encoders: readonly EncoderDeal[];
  /** Lineage of the step: the backbone's graph first, then one for each modality with an encoder. */
  readonly graphs: readonly DataGraph[];
}

/** One slice of one share, and the ranks that need it. */
export interface Delivery {
  readonly share: number;
  readonly slice: number;
  /** Ranks that read it from the constructor. */
  readonly readers: readonly number[];
  /** Ranks that get it from a reader over the training network: [from, to]. */
  readonly relays: readonly (readonly [number, number])[];
}

/** The parts of one modality dealt over all ranks, whatever rank their samples are on. */
export interface EncoderDeal {
  readonly modality: EncoderModality;
  /** Sample that each part is of, in global order. */
  readonly sampleOf: Int32Array;
  /** Its number among the sample's parts of this modality. */
  readonly partOf: Int32Array;
  /** Rank that encodes it. */
  readonly rankOf: Int32Array;
  /** Work of each rank's encoder. */
  readonly loads: Float64Array;
  readonly imbalance: number;
  /** Parts whose embedding goes to another share than that of the rank that made it. */
  readonly moved: number;
}

/** The samples of one microbatch of one share, ascending in global order. */
export function membersOf(plan: LoadingPlan, share: number, microbatch: number): readonly number[] {
  if (!(share >= 0 && share < plan.shares && microbatch >= 0 && microbatch < plan.microbatches)) {
    throw new TriremeError(
      "RANGE",
      `microbatch ${microbatch} of share ${share}: the plan has ${plan.shares} shares of ${plan.microbatches}`,
    );
  }
  const members: number[] = [];
  plan.shareOf.forEach((s, sample) => {
    if (s === share && plan.microbatchOf[sample] === microbatch) members.push(sample);
  });
  return members;
}

/**
 * Who reads and who is sent to. Along the axes of `broadcast` only the first rank reads; the others get
 * it from that one. O(ranks · axes).
 */
export function deliveriesOf(tree: PlaceTree, broadcast: ReadonlySet<string>): readonly Delivery[] {
  const cells = Array.from({ length: tree.shares * tree.slices }, (_, cell) => ({
    share: Math.floor(cell / tree.slices),
    slice: cell % tree.slices,
    readers: [] as number[],
    relays: [] as (readonly [number, number])[],
  }));
  for (const { rank, share, slice } of tree.places) {
    let from = rank;
    let span = 1;
    for (const { name, size } of tree.axes) {
      if (broadcast.has(name)) from -= (Math.floor(rank / span) % size) * span;
      span *= size;
    }
    const cell = cells[share * tree.slices + slice]!;
    if (from === rank) cell.readers.push(rank);
    else cell.relays.push([from, rank]);
  }
  return cells;
}
