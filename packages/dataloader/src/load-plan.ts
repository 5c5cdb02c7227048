/**
 * Which sample goes where at a step. The global order comes first: a step takes the next
 * `globalBatch` samples of it, whatever the number of ranks; only then are they dealt out.
 */
import { TriremeError } from "@trireme/core";

/** The samples of one step in global order, and how they are dealt to ranks and microbatches. */
export interface LoadPlan {
  readonly step: number;
  /** Position of the first sample in the order of the whole run: step · globalBatch. */
  readonly first: number;
  /** Per sample, its index in the dataset. [globalBatch] */
  readonly samples: Float64Array;
  /** Per sample, the epoch it belongs to: a step may close one epoch and open the next. [globalBatch] */
  readonly epochs: Float64Array;
  /** Data-parallel ranks. */
  readonly dp: number;
  /** Samples of a microbatch. */
  readonly microbatch: number;
  /** Microbatches of each rank. */
  readonly microbatches: number;
}

/** Where a sample of a step goes. */
export interface Placement {
  readonly rank: number;
  readonly microbatch: number;
  readonly row: number;
}

/** Where sample `j` of a step goes: ranks take contiguous shares, microbatches contiguous rows of them. */
export function placementOf(plan: LoadPlan, j: number): Placement {
  if (!Number.isInteger(j) || j < 0 || j >= plan.samples.length) {
    throw new TriremeError(
      "RANGE",
      `sample ${j} is outside the step's 0..${plan.samples.length - 1}`,
    );
  }
  const share = plan.samples.length / plan.dp;
  const within = j % share;
  return {
    rank: Math.floor(j / share),
    microbatch: Math.floor(within / plan.microbatch),
    row: within % plan.microbatch,
  };
}

/** The first row, in global order, of a rank's microbatch; the other rows follow it. */
export function firstRow(plan: LoadPlan, rank: number, microbatch: number): number {
  if (!Number.isInteger(rank) || rank < 0 || rank >= plan.dp) {
    throw new TriremeError("RANGE", `data-parallel rank ${rank} is outside 0..${plan.dp - 1}`);
  }
  if (!Number.isInteger(microbatch) || microbatch < 0 || microbatch >= plan.microbatches) {
    throw new TriremeError(
      "RANGE",
      `microbatch ${microbatch} is outside 0..${plan.microbatches - 1}`,
    );
  }
  return (rank * plan.microbatches + microbatch) * plan.microbatch;
}

/** The samples of one rank's microbatch, a view. [microbatch] */
export function samplesOf(plan: LoadPlan, rank: number, microbatch: number): Float64Array {
  const row = firstRow(plan, rank, microbatch);
  return plan.samples.subarray(row, row + plan.microbatch);
}
