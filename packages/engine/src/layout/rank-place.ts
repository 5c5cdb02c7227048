import type { Schedule } from "@trireme/schedulers";
import { defineMesh } from "@trireme/topology";
import { type Model, type Plan, axes } from "@trireme/workload";
import { planSchedule } from "./plan-schedule.ts";
import { type RankLayout, rankLayout } from "./rank-layout.ts";
import { stagedLayout } from "../staged/staged-layout.ts";

/** Where a rank stands in a plan, and the schedule of its pipeline. */
export interface RankPlace {
  readonly layout: RankLayout;
  readonly schedule: Schedule;
}

/** The place of world rank `rank`. Throws `ENGINE_PLAN` where both copies of a stage meet on one rank. */
export function rankPlace(model: Model, plan: Plan, rank: number): RankPlace {
  if (plan.pipelines !== undefined) {
    const { layout, pipeline } = stagedLayout(model, plan, rank);
    return { layout, schedule: planSchedule(plan, pipeline) };
  }
  const schedule = planSchedule(plan);
  return { layout: rankLayout(model, plan, defineMesh(axes(plan)), schedule, rank), schedule };
}
