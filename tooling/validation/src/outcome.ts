/** What became of one measurement: compared with a prediction, or skipped for a stated reason. */

import type { PredictedKind } from "@trireme/cost-model";
import type { Accelerator, Cluster } from "@trireme/topology";
import type { Model, Plan } from "@trireme/workload";

/** What was run, where the measurement is a step's. */
export interface Step {
  readonly model: Model;
  readonly plan: Plan;
  readonly cluster: Cluster;
}

/** Groups of measurements that are scored together. */
export interface Group {
  /** Stable name of the score's line. */
  readonly id: string;
  /** Where the measurements come from. */
  readonly source: string;
  /** What is measured. */
  readonly kind: string;
  /** What the score is to reach. */
  readonly target?: Target;
  /** Whether the page prints every row, not only the worst. */
  readonly everyRow?: boolean;
}

/** Largest errors allowed, as fractions; for labels and ranks, smallest scores. */
export interface Target {
  readonly medianError?: number;
  readonly p90Error?: number;
  readonly meanError?: number;
  readonly maxError?: number;
  readonly accuracy?: number;
  readonly balancedAccuracy?: number;
  readonly spearman?: number;
}

/** What an interval was asked for: `interval(kind, predicted, accelerator)`. */
export interface Claim {
  readonly kind: PredictedKind;
  readonly accelerator: Accelerator;
}

/** A measurement with its prediction, in the same unit. */
export interface Compared {
  readonly group: Group;
  readonly id: string;
  readonly measured: number;
  readonly predicted: number;
  /** Measurements that differ in layout only share a family: their order is scored too. */
  readonly family?: string;
  /** What the prediction's interval is of. */
  readonly claim?: Claim;
  /** Who published it, where the group has several. */
  readonly source?: string;
  /** What the prediction consists of, for people to read. */
  readonly detail?: string;
  readonly step?: Step;
}

/** A measurement without one. */
export interface Skipped {
  readonly group: Group;
  readonly id: string;
  /** The same words for the same cause, so that causes can be counted. */
  readonly skipped: string;
}

export type Outcome = Compared | Skipped;

/** Whether a prediction was made. */
export function isCompared(o: Outcome): o is Compared {
  return !("skipped" in o);
}
