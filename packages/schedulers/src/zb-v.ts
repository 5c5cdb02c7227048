/**
 * ZB-V (Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, §6): two stages per rank placed as a
 * V, so that the last stage is on the first rank and the backward starts there at once. No bubble
 * inside a rank when F = I = W, with 1F1B's memory (2P stages' activations, each half as large). The
 * order is torch's ScheduleZBVZeroBubble.
 */
import { kindCode } from "./action.ts";
import type { SingleStageOptions } from "./gpipe.ts";
import { ScheduleBuilder, checkCounts } from "./schedule-builder.ts";
import { type Schedule, vPlacement } from "./schedule.ts";

const { F, I, W } = kindCode;

/** ZB-V; two stages per rank by its nature. */
export function zbV(o: SingleStageOptions): Schedule {
  const { ranks, microbatches } = o;
  checkCounts("zb-v", { ranks, microbatches });
  const stages = 2 * ranks;
  const builder = new ScheduleBuilder(
    {
      name: "zb-v",
      ranks,
      chunks: 2,
      microbatches,
      stages,
      stageRank: vPlacement(ranks, stages),
      directions: 1,
      forwardOnly: false,
    },
    3 * stages * microbatches,
  );
  // The pattern needs 2P−1 microbatches; with fewer it is cut out of one that has them.
  const n = Math.max(2 * ranks - 1, microbatches);
  for (let r = 0; r < ranks; r++) {
    // Next microbatch of each kind on the chunk that descends (0) and ascends (1) the V.
    const next = new Int32Array(6);
    const add = (kind: 0 | 1 | 2, chunk: 0 | 1): void => {
      const m = next[2 * kind + chunk]!++;
      if (m < microbatches) builder.add(kind, chunk === 0 ? r : stages - 1 - r, m);
    };
    const chunk1 = (): void => {
      add(F, 1);
      add(I, 1);
      add(W, 1);
    };
    for (let k = 0; k < 2 * (ranks - r) - 1; k++) add(F, 0);
    for (let k = 0; k < r; k++) {
      add(F, 1);
      add(F, 0);
    }
    for (let k = 0; k < ranks - r; k++) chunk1();
    while (next[2 * F + 1]! < next[2 * F]! || next[2 * F]! < n) {
      if (next[2 * F]! < n) add(F, 0);
      add(I, 0);
      add(W, 0);
      chunk1();
    }
    // Past the last forward the weight gradients wait for the rank's idle time at the end.
    for (let k = 0; k < r; k++) {
      add(I, 0);
      add(I, 1);
    }
    for (let k = 0; k < ranks - r; k++) {
      add(I, 0);
      add(W, 0);
    }
    while (next[2 * W + 1]! < next[2 * I + 1]!) add(W, 1);
    while (next[2 * W]! < next[2 * I]!) add(W, 0);
    builder.endRow();
  }
  return builder.finish();
}
