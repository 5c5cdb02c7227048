/** The forward-only form of a schedule, for evaluation and inference. */
import { kindCode } from "./action.ts";
import { ScheduleBuilder } from "./schedule-builder.ts";
import type { Schedule } from "./schedule.ts";

/**
 * The schedule without its backwards: forwards, their sends and receives, UNSHARD and RESHARD stay
 * in order. In Megatron's words, every microbatch is warm-up. Works for every schedule; of DualPipe
 * both directions stay.
 */
export function forwardOnly(s: Schedule): Schedule {
  const { slot, ...shape } = s;
  const keep: ReadonlySet<number> = new Set([
    kindCode.F,
    kindCode.SEND_F,
    kindCode.RECV_F,
    kindCode.UNSHARD,
    kindCode.RESHARD,
  ]);
  const builder = new ScheduleBuilder(
    { ...shape, name: `${s.name} forward`, forwardOnly: true },
    s.kind.length,
    slot !== undefined,
  );
  for (let r = 0; r < s.ranks; r++) {
    for (let i = s.offsets[r]!; i < s.offsets[r + 1]!; i++) {
      if (keep.has(s.kind[i]!)) {
        builder.add(s.kind[i]!, s.stage[i]!, s.microbatch[i]!, 0, slot?.[i]);
      }
    }
    builder.endRow();
  }
  return builder.finish();
}
