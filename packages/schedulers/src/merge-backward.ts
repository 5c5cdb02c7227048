/** Joins the halves of a split backward that stand side by side. */
import { kindCode } from "./action.ts";
import { ScheduleBuilder } from "./schedule-builder.ts";
import type { Schedule } from "./schedule.ts";

/** Replaces each I with a W of the same stage and microbatch right behind it by one B. */
export function mergeBackward(s: Schedule): Schedule {
  const { kind, stage, microbatch, slot } = s;
  const builder = new ScheduleBuilder(shapeOf(s), kind.length, slot !== undefined);
  for (let r = 0; r < s.ranks; r++) {
    const end = s.offsets[r + 1]!;
    for (let i = s.offsets[r]!; i < end; i++) {
      const merge =
        kind[i] === kindCode.I &&
        i + 1 < end &&
        kind[i + 1] === kindCode.W &&
        stage[i] === stage[i + 1] &&
        microbatch[i] === microbatch[i + 1];
      builder.add(
        merge ? kindCode.B : kind[i]!,
        stage[i]!,
        microbatch[i]!,
        s.overlap[i],
        slot?.[i],
      );
      if (merge) i++;
    }
    builder.endRow();
  }
  return builder.finish();
}

function shapeOf(s: Schedule): Omit<Schedule, "slot"> {
  const { slot: _, ...shape } = s;
  return shape;
}
