/**
 * DeepSpeed's pipeline schedules (Rasley et al., DeepSpeed, KDD 2020; deepspeed.runtime.pipe.schedule):
 * 1F1B and a forward-only pipeline on a grid of time slots. A stage runs forwards in slots of one
 * parity and backwards in those of the other.
 */
import { TriremeError } from "@trireme/core";
import { kindCode } from "./action.ts";
import type { SingleStageOptions } from "./gpipe.ts";
import { ScheduleBuilder, checkCounts } from "./schedule-builder.ts";
import { type Schedule, loopPlacement } from "./schedule.ts";

/** TrainSchedule: 2(M + P − 1) slots, with F(s,m) in slot 2m + s and B(s,m) in 2m + 2P − 1 − s. */
export function deepSpeedTrain(o: SingleStageOptions): Schedule {
  const { ranks, microbatches } = o;
  const builder = startBuilder("deepspeed-train", o, false);
  for (let r = 0; r < ranks; r++) {
    const last = 2 * (microbatches + ranks - 1);
    for (let slot = r; slot < last; slot++) {
      const forward = (slot - r) / 2;
      if (Number.isInteger(forward)) {
        if (forward < microbatches) builder.add(kindCode.F, r, forward, 0, slot);
        continue;
      }
      const backward = (slot - 2 * ranks + 1 + r) / 2;
      if (backward >= 0 && backward < microbatches) builder.add(kindCode.B, r, backward, 0, slot);
    }
    builder.endRow();
  }
  return builder.finish();
}

/** InferenceSchedule: M + P − 1 slots, with F(s,m) in slot m + s. */
export function deepSpeedInference(o: SingleStageOptions): Schedule {
  const { ranks, microbatches } = o;
  const builder = startBuilder("deepspeed-inference", o, true);
  for (let r = 0; r < ranks; r++) {
    for (let m = 0; m < microbatches; m++) builder.add(kindCode.F, r, m, 0, m + r);
    builder.endRow();
  }
  return builder.finish();
}

/**
 * Activation buffers that a rank of a DeepSpeed schedule keeps: max(2, min(P − r, M)) in training,
 * 2 in inference. Microbatch m uses buffer m mod this number.
 */
export function deepSpeedBuffers(s: Schedule, rank: number): number {
  if (!Number.isInteger(rank) || rank < 0 || rank >= s.ranks) {
    throw new TriremeError(
      "RANK",
      `rank ${rank} is not in 0..${s.ranks - 1}, the ranks of ${s.name}`,
    );
  }
  return s.forwardOnly ? 2 : Math.max(2, Math.min(s.ranks - rank, s.microbatches));
}

function startBuilder(name: string, o: SingleStageOptions, forwardOnly: boolean): ScheduleBuilder {
  const { ranks, microbatches } = o;
  checkCounts(name, { ranks, microbatches });
  return new ScheduleBuilder(
    {
      name,
      ranks,
      chunks: 1,
      microbatches,
      stages: ranks,
      stageRank: loopPlacement(ranks, ranks),
      directions: 1,
      forwardOnly,
    },
    (forwardOnly ? 1 : 2) * ranks * microbatches,
    true,
  );
}
