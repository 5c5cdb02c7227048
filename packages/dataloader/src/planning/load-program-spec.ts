/** What a load program says, as data. */
import type { BalanceMethod } from "../distribution.ts";
import type { PlaceTree } from "../place-tree.ts";
import type { MixOptions } from "./mixer.ts";
import type { SampleCosts, SampleMetadata } from "./sample-costs.ts";

/** What is balanced. */
export type BalanceLevel =
  /** Samples by their work in the backbone. */
  | "backbone"
  /** Samples by their work in the encoders. */
  | "encoder"
  /** Samples by the backbone's; parts, apart from their samples, over the encoders of all ranks. */
  | "hybrid";

/** Everything a planner decides by. */
export interface LoadProgramSpec {
  readonly tree: PlaceTree;
  /** A name for each source, the key of its state. */
  readonly sources: readonly string[];
  /** Samples of a step over all ranks. */
  readonly globalBatch: number;
  /** Microbatches of each share. */
  readonly microbatches: number;
  readonly mix: MixOptions;
  /** Balancing stays within groups of so many neighbouring shares. */
  readonly groupSize: number;
  readonly costOf: (sample: SampleMetadata) => SampleCosts;
  readonly method: BalanceMethod;
  readonly level: BalanceLevel;
  /** Whether microbatches have equal counts of samples. */
  readonly equalCounts: boolean;
  /** Axes along which ranks pass data on. */
  readonly broadcast: readonly string[];
}
