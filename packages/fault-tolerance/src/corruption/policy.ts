/**
 * What to do when a detector speaks. Recomputing the step before it is committed restores the run
 * (found for matmul faults in LLaMA of 60M to 1.3B, arXiv 2604.00726), so that comes first; what stays wrong when
 * recomputed is not a transient fault, and a device that is caught again is cordoned.
 */
import { TriremeError, type Seconds, days } from "@trireme/core";

export type CorruptionDetector =
  | "not-finite"
  | "outlier"
  | "loss-spike"
  | "checksum"
  | "replay"
  | "diagnostics";

export interface CorruptionFinding {
  readonly time: Seconds;
  readonly step: number;
  readonly detector: CorruptionDetector;
  /** Device that the detector names; outliers of the whole job name none. */
  readonly device?: number;
  /** Whether the step's update is already in the weights. */
  readonly committed: boolean;
}

export type CorruptionAction =
  /** Do the step again, elsewhere if a device was named. */
  | { readonly kind: "recompute"; readonly step: number }
  /** Leave the update out: the step gives the same again, so its data or the model are the cause. */
  | { readonly kind: "skip"; readonly step: number }
  /** Go back to the newest checkpoint before the step. */
  | { readonly kind: "roll-back"; readonly before: number }
  /** Take the device's host out, then go on as `next` says. */
  | {
      readonly kind: "cordon";
      readonly device: number;
      readonly next: "recompute" | "roll-back";
      readonly step: number;
    };

export interface CorruptionPolicy {
  /** Findings against one device within `window` that cordon it; 2 by default. */
  readonly strikes?: number;
  /** 7 days by default: in-field defects show about once in one or two weeks. */
  readonly window?: Seconds;
  /** Recomputations of one step before it is skipped; 1 by default. */
  readonly recomputations?: number;
}

/**
 * The action on the newest finding.
 * @param findings All findings so far in order of time, the newest last; findings of steps since
 * recomputed stay in the list, for they are the evidence.
 * @throws TriremeError "CORRUPTION" on no findings, or a policy out of range.
 */
export function corruptionAction(
  findings: readonly CorruptionFinding[],
  policy: CorruptionPolicy = {},
): CorruptionAction {
  const { strikes = 2, window = days(7), recomputations = 1 } = policy;
  const last = findings.at(-1);
  if (last === undefined) throw new TriremeError("CORRUPTION", "no finding to act on");
  if (!(strikes >= 1 && window >= 0 && recomputations >= 0)) {
    throw new TriremeError(
      "CORRUPTION",
      `${strikes} strikes in ${window} s and ${recomputations} recomputations: use 1, 0 and 0 or more`,
    );
  }
  const { step, device, committed, time } = last;
  const next = committed ? "roll-back" : "recompute";
  if (device !== undefined) {
    const against = findings.filter((each) => each.device === device && time - each.time <= window);
    // Diagnostics test the device itself: one failure is proof.
    if (against.length >= strikes || last.detector === "diagnostics") {
      return { kind: "cordon", device, next, step };
    }
  }
  if (committed) return { kind: "roll-back", before: step };
  const tries = findings.filter((each) => each.step === step && !each.committed).length - 1;
  return tries < recomputations ? { kind: "recompute", step } : { kind: "skip", step };
}
