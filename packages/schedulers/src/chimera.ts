/**
 * Chimera (Li and Hoefler, Chimera: Efficiently Training Large-Scale Neural Networks with Bidirectional
 * Pipelines, SC 2021, §3): microbatches enter at both ends, every rank holds a stage of each direction
 * and works for one while it would wait in the other. Half the bubble of 1F1B, (P−2) actions instead
 * of 2(P−1) where F and B take equal time, for twice the weights and at most P activations (P + 1 when P is odd).
 *
 * In a unit of P microbatches, half for each end, F(s,m) stands in slot s + 2m and B(s,m) in
 * 2P − 1 − s + 2m of a grid on which the directions never meet when P is even; units follow each other
 * every 2P slots.
 */
import { TriremeError } from "@trireme/core";
import { kindCode } from "./action.ts";
import type { SingleStageOptions } from "./gpipe.ts";
import { ScheduleBuilder, checkCounts } from "./schedule-builder.ts";
import { type Schedule, vPlacement } from "./schedule.ts";

/**
 * Chimera's schedule. Stages and microbatches are numbered as in `dualPipe`.
 * @throws TriremeError `SCHEDULE` unless the number of microbatches is even.
 */
export function chimera(o: SingleStageOptions): Schedule {
  const { ranks, microbatches } = o;
  checkCounts("chimera", { ranks, microbatches });
  if (microbatches % 2 !== 0) {
    throw new TriremeError(
      "SCHEDULE",
      `chimera needs an even number of microbatches, half for each end; ${microbatches} is odd, ` +
        `${microbatches + 1} is not`,
    );
  }
  const stages = 2 * ranks;
  const half = microbatches / 2;
  const unit = Math.ceil(ranks / 2);
  const builder = new ScheduleBuilder(
    {
      name: "chimera",
      ranks,
      chunks: 2,
      microbatches,
      stages,
      stageRank: vPlacement(ranks, stages),
      directions: 2,
      forwardOnly: false,
    },
    4 * ranks * microbatches,
  );
  for (let r = 0; r < ranks; r++) {
    const row: { slot: number; kind: number; stage: number; microbatch: number }[] = [];
    for (let direction = 0; direction < 2; direction++) {
      const stage = direction === 0 ? r : ranks - 1 - r;
      for (let k = 0; k < half; k++) {
        const start = 2 * ranks * Math.floor(k / unit) + 2 * (k % unit);
        const at = { stage: direction * ranks + stage, microbatch: direction * half + k };
        row.push(
          { slot: start + stage, kind: kindCode.F, ...at },
          { slot: start + 2 * ranks - 1 - stage, kind: kindCode.B, ...at },
        );
      }
    }
    row.sort((a, b) => a.slot - b.slot);
    for (const a of row) builder.add(a.kind, a.stage, a.microbatch);
    builder.endRow();
  }
  return builder.finish();
}
