/**
 * 1F1B, also PipeDream-flush (Narayanan et al., Memory-Efficient Pipeline-Parallel DNN Training,
 * ICML 2021, §3.2): warm up with P−1−r forwards, then alternate forward and backward, then drain.
 * Bubble (P−1)(F+B) as in GPipe, activations of only min(P−r, M) microbatches on rank r.
 */
import { kindCode } from "./action.ts";
import type { SingleStageOptions } from "./gpipe.ts";
import { checkCounts, loopBuilder } from "./schedule-builder.ts";
import type { Schedule } from "./schedule.ts";

/** One forward, one backward. Fewer microbatches than ranks are allowed: the ranks only warm up. */
export function oneForwardOneBackward(o: SingleStageOptions): Schedule {
  const { ranks, microbatches } = o;
  checkCounts("1f1b", { ranks, microbatches });
  const builder = loopBuilder("1f1b", o);
  for (let r = 0; r < ranks; r++) {
    const warmUp = Math.min(ranks - 1 - r, microbatches);
    for (let m = 0; m < warmUp; m++) builder.add(kindCode.F, r, m);
    for (let m = warmUp; m < microbatches; m++) {
      builder.add(kindCode.F, r, m);
      builder.add(kindCode.B, r, m - warmUp);
    }
    for (let m = microbatches - warmUp; m < microbatches; m++) builder.add(kindCode.B, r, m);
    builder.endRow();
  }
  return builder.finish();
}
