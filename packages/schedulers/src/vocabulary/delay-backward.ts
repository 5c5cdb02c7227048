/**
 * Backwards later by whole microbatches: what a building block gains where intervals are put between the last stage's
 * forward and backward (arXiv 2411.05288 §5.2, after Qi et al., arXiv 2405.15362 §3). Every rank holds as many
 * microbatches more.
 */
import { kindCode } from "../action.ts";
import { ScheduleBuilder } from "../schedule-builder.ts";
import type { Schedule } from "../schedule.ts";

/**
 * The schedule in which each backward stands where that of `intervals` microbatches later stood; the last ones follow
 * at the end in the order that they had. Ranks that agreed on an order still do, so that no new wait can close a
 * circle.
 */
export function delayBackward(s: Schedule, intervals: number): Schedule {
  const { kind, stage, microbatch, microbatches } = s;
  const { slot: _, ...shape } = s;
  const builder = new ScheduleBuilder(shape, kind.length);
  for (let r = 0; r < s.ranks; r++) {
    const last: number[] = [];
    for (let i = s.offsets[r]!; i < s.offsets[r + 1]!; i++) {
      const m = microbatch[i]!;
      if (kind[i] === kindCode.F) {
        builder.add(kindCode.F, stage[i]!, m);
        continue;
      }
      if (m >= intervals) builder.add(kind[i]!, stage[i]!, m - intervals);
      if (m >= microbatches - intervals) last.push(i);
    }
    for (const i of last) builder.add(kind[i]!, stage[i]!, microbatch[i]!);
    builder.endRow();
  }
  return builder.finish();
}
