/**
 * Looped breadth-first pipeline (Lamy-Poirier, Breadth-First Pipeline Parallelism, MLSys 2023, §4):
 * each rank runs all microbatches through one of its chunks before the next, backwards in reverse.
 * Bubble as interleaved 1F1B, least exposed to communication of the looped schedules, activations
 * of all M·V chunks.
 */
import { kindCode } from "./action.ts";
import { checkCounts, loopBuilder } from "./schedule-builder.ts";
import type { Schedule } from "./schedule.ts";

/** Ranks, stages per rank and microbatches of a schedule with several stages per rank. */
export interface MultiStageOptions {
  readonly ranks: number;
  readonly chunks: number;
  readonly microbatches: number;
}

/** Chunk after chunk all forwards, then in reverse all backwards, last microbatch first. */
export function loopedBfs(o: MultiStageOptions): Schedule {
  const { ranks, chunks, microbatches } = o;
  checkCounts("looped-bfs", { ranks, chunks, microbatches });
  const stages = ranks * chunks;
  const builder = loopBuilder("looped-bfs", o);
  for (let r = 0; r < ranks; r++) {
    for (let stage = r; stage < stages; stage += ranks) {
      for (let m = 0; m < microbatches; m++) builder.add(kindCode.F, stage, m);
    }
    for (let stage = stages - ranks + r; stage >= 0; stage -= ranks) {
      for (let m = microbatches - 1; m >= 0; m--) builder.add(kindCode.B, stage, m);
    }
    builder.endRow();
  }
  return builder.finish();
}
