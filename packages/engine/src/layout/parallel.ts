/** How the work of one stage is spread over ranks that hold no replicas of each other's part. */
import type { LayerGroup } from "./recorded-group.ts";
import type { Plan } from "@trireme/workload";

/** Ranks that share out each layer's products. */
export interface TensorParallel {
  readonly group: LayerGroup;
  /** Between products each rank keeps its part of the tokens (Korthikanti et al., 2022). */
  readonly sequence: boolean;
  /** In a backward, collectives run behind the products of the layer that they belong to. */
  readonly overlaps: boolean;
}

/** Ranks that share out the tokens of each sample, as `contextPieces` says. */
export interface ContextParallel {
  readonly group: LayerGroup;
  readonly exchange: Plan["contextExchange"];
}

/** The axes within a stage; undefined where there is one rank. */
export interface Parallel {
  readonly tensor: TensorParallel | undefined;
  readonly context: ContextParallel | undefined;
}

/** A stage on one rank. */
export const undivided: Parallel = { tensor: undefined, context: undefined };
