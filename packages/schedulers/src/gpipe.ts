/**
 * GPipe (Huang et al., GPipe, NeurIPS 2019, §2.3), "all forward, all backward": every rank runs all
 * forwards, then all backwards. Bubble (P−1)(F+B), activations of M microbatches on every rank.
 */
import { kindCode } from "./action.ts";
import { checkCounts, loopBuilder } from "./schedule-builder.ts";
import type { Schedule } from "./schedule.ts";

/** Ranks and microbatches of a schedule with one stage per rank. */
export interface SingleStageOptions {
  readonly ranks: number;
  readonly microbatches: number;
}

/** All forwards, then all backwards in order of microbatch (as torch issues them). */
export function gpipe(o: SingleStageOptions): Schedule {
  const { ranks, microbatches } = o;
  checkCounts("gpipe", { ranks, microbatches });
  const builder = loopBuilder("gpipe", o);
  for (let r = 0; r < ranks; r++) {
    for (let m = 0; m < microbatches; m++) builder.add(kindCode.F, r, m);
    for (let m = 0; m < microbatches; m++) builder.add(kindCode.B, r, m);
    builder.endRow();
  }
  return builder.finish();
}
