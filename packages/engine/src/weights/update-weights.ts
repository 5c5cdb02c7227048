/** The update of a rank's weights, by the optimizer of the run. */
import type { Bucket } from "./bucket.ts";
import { lambMoments, lambUpdate, sumNorms } from "./lamb.ts";
import { type OptimizerOptions, adamw, clipFactor } from "./optimizer.ts";

/** What is updated, and how. */
export interface WeightUpdate {
  readonly buckets: readonly Bucket[];
  readonly optimizer: OptimizerOptions;
  /** Counts from 1. */
  readonly update: number;
  readonly learningRate: number;
  /** Norm of the whole model's gradient. */
  readonly norm: number;
  /** Notes when something was done, and bytes that it told to other ranks. */
  readonly timed: <T>(action: "UPDATE" | "TRUST", bytes: number, what: () => T) => T;
}

/** Moves what each bucket's segment holds; ranks that share a tensor out call it together. */
export function updateWeights(o: WeightUpdate): void {
  const { buckets, optimizer, update, learningRate, timed } = o;
  const scale = clipFactor(o.norm, optimizer.clip);
  if (optimizer.kind === "adamw") {
    timed("UPDATE", 0, () => {
      for (const bucket of buckets) adamw(bucket, optimizer, update, learningRate, scale);
    });
    return;
  }
  const norms = timed("UPDATE", 0, () => lambMoments(buckets, optimizer, update, scale));
  const bytes = norms.reduce((sum, { squares }) => sum + squares.byteLength, 0);
  timed("TRUST", bytes, () => sumNorms(norms));
  timed("UPDATE", 0, () => lambUpdate(norms, optimizer, update, learningRate));
}
