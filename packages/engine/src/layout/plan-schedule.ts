import { type Schedule, createSchedule, lower } from "@trireme/schedulers";
import { type Plan, microbatches } from "@trireme/workload";

/** Schedules whose ranks hold two stages, one of each direction, of a model cut into pp stages. */
const twoDirections: ReadonlySet<Plan["schedule"]> = new Set(["chimera", "dualpipe"]);

/** Stages whose weights a rank holds whole at a time under ZeRO 3. */
const unsharded = 3;

/**
 * The schedule of a plan with all that ranks do: messages, and passes on the weights of stages; of one
 * pipeline, where they differ.
 */
export function planSchedule(plan: Plan, pipeline?: number): Schedule {
  const schedule = createSchedule(plan.schedule, {
    ranks: plan.pipelines?.[pipeline ?? 0]?.length ?? plan.pp,
    ...(twoDirections.has(plan.schedule) ? {} : { chunks: plan.vpp }),
    microbatches: microbatches(plan, pipeline),
  });
  return lower(schedule, {
    reduceGrad: true,
    ...(plan.zero === 3 ? { maxUnsharded: unsharded } : {}),
  });
}
