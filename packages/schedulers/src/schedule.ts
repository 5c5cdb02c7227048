/**
 * A pipeline schedule: for each pipeline rank the ordered actions of one training step. Actions are
 * typed-array columns, rank after rank (compressed rows), so that a million of them cost a few
 * megabytes and no objects; `actionsOf` gives objects at the door.
 */
import { TriremeError } from "@trireme/core";
import { type Action, actionKinds } from "./action.ts";

/** Ordered actions of each pipeline rank for one step. All columns have the same length. */
export interface Schedule {
  readonly name: string;
  /** Pipeline ranks, P. */
  readonly ranks: number;
  /** Stages that each rank holds, V. */
  readonly chunks: number;
  /** Microbatches of one step, M, over both directions. */
  readonly microbatches: number;
  /** Stages over all ranks and directions, P·V. */
  readonly stages: number;
  /** The pipeline rank of each stage. */
  readonly stageRank: readonly number[];
  /**
   * Independent chains of stages. With 2 (DualPipe) the stages of the second direction follow those
   * of the first and hold the same weights: stage s carries the layers of stage s mod (stages / 2),
   * and the second half of the microbatches enters at stage stages / 2.
   */
  readonly directions: 1 | 2;
  /** True when the step has no backward (inference, evaluation). */
  readonly forwardOnly: boolean;
  /** The actions of rank r are `offsets[r] .. offsets[r + 1] − 1`; ranks + 1 entries. */
  readonly offsets: Int32Array;
  /** Positions in `actionKinds`. */
  readonly kind: Uint8Array;
  readonly stage: Int32Array;
  /** −1 for actions on a whole stage. */
  readonly microbatch: Int32Array;
  /** 1 on the F of an overlapped pair, 2 on the B that follows it, else 0. */
  readonly overlap: Uint8Array;
  /** Time slot of each action, ascending in a rank, where the schedule is drawn on a grid. */
  readonly slot?: Int32Array;
}

/** Number of actions of all ranks; an overlapped pair counts as two. */
export function actionCount(s: Schedule): number {
  return s.kind.length;
}

/** Action number `i` of the columns as an object. */
export function actionAt(s: Schedule, i: number): Action {
  const kind = actionKinds[s.kind[i] ?? -1];
  if (kind === undefined) {
    throw new TriremeError(
      "ACTION",
      `action ${i} is outside of the schedule's 0..${s.kind.length - 1}`,
    );
  }
  const action: Action = { stage: s.stage[i]!, kind, microbatch: s.microbatch[i]! };
  const half = s.overlap[i]!;
  return half === 0 ? action : { ...action, overlap: half === 1 ? "first" : "second" };
}

/** The ordered actions of one pipeline rank. */
export function actionsOf(s: Schedule, rank: number): readonly Action[] {
  if (!Number.isInteger(rank) || rank < 0 || rank >= s.ranks) {
    throw new TriremeError(
      "RANK",
      `rank ${rank} is not in 0..${s.ranks - 1}, the ranks of ${s.name}`,
    );
  }
  const actions: Action[] = [];
  for (let i = s.offsets[rank]!; i < s.offsets[rank + 1]!; i++) actions.push(actionAt(s, i));
  return actions;
}

/** Stages of one direction. */
export function stagesPerDirection(s: Pick<Schedule, "stages" | "directions">): number {
  return s.stages / s.directions;
}

/** Stage s on rank s mod P: GPipe, 1F1B, looped and interleaved schedules. */
export function loopPlacement(ranks: number, stages: number): number[] {
  return Array.from({ length: stages }, (_, s) => s % ranks);
}

/** Zigzag: P stages up the ranks, the next P down again, and so on. V schedules, DualPipe. */
export function vPlacement(ranks: number, stages: number): number[] {
  return Array.from({ length: stages }, (_, s) => {
    const place = s % ranks;
    return Math.floor(s / ranks) % 2 === 0 ? place : ranks - 1 - place;
  });
}
