/**
 * Schedules with passes over a vocabulary that is split over all ranks (Yeung et al., Balancing Pipeline Parallelism
 * with Vocabulary Parallelism, MLSys 2025, §5.1). Of every microbatch each rank runs S after the last stage's forward,
 * and T after every rank's S. The last stage's backward waits for every S where S has its gradient (one barrier,
 * Algorithm 2), or for every T (two, Algorithm 1).
 */
import { TriremeError } from "@trireme/core";
import { printAction } from "../action.ts";
import { type Schedule, actionAt } from "../schedule.ts";

/** What an entry of a row is: an action of the schedule, or a pass of the rank. */
export const entryCode: { readonly action: 0; readonly S: 1; readonly T: 2 } = {
  action: 0,
  S: 1,
  T: 2,
};

/** A schedule and, in one row for each rank, its actions with the passes between them. */
export interface VocabularySchedule {
  readonly schedule: Schedule;
  /** Exchanges of all ranks between the last stage's forward and backward. */
  readonly barriers: 1 | 2;
  /** The entries of rank r are `offsets[r] .. offsets[r + 1] − 1`. */
  readonly offsets: Int32Array;
  /** Values of `entryCode`. */
  readonly kind: Uint8Array;
  /** Number of the action in the schedule's columns, or the microbatch of a pass. */
  readonly of: Int32Array;
}

/**
 * The row of a rank as text: `3F1`, `S1`, `T0`.
 * @throws TriremeError `RANK` for a rank that is not there.
 */
export function vocabularyRow(v: VocabularySchedule, rank: number): readonly string[] {
  if (!Number.isInteger(rank) || rank < 0 || rank >= v.schedule.ranks) {
    throw new TriremeError("RANK", `rank ${rank} is not in 0..${v.schedule.ranks - 1}`);
  }
  return Array.from({ length: v.offsets[rank + 1]! - v.offsets[rank]! }, (_, n) =>
    entryText(v, v.offsets[rank]! + n),
  );
}

/** One entry as text. */
export function entryText(v: VocabularySchedule, i: number): string {
  const of = v.of[i]!;
  if (v.kind[i] === entryCode.action) return printAction(actionAt(v.schedule, of));
  return `${v.kind[i] === entryCode.S ? "S" : "T"}${of}`;
}
