/**
 * The optimum for small pipelines, by the HiGHS solver (Huangfu and Hall, Parallelizing the Dual
 * Revised Simplex Method, Mathematical Programming Computation 10, 2018) compiled to WebAssembly: the
 * npm package `highs`, an optional peer dependency. The judge of the heuristics.
 */
import { type Seconds, TriremeError, missingPeer } from "@trireme/core";
import type loadHighsModule from "highs";
import { type AutomaticOptions, automaticShop, automaticZeroBubble } from "./search/automatic.ts";
import { Evaluator, scheduleOf } from "./search/job-shop.ts";
import { mixedInteger } from "./search/mixed-integer.ts";
import { replay } from "./replay.ts";
import type { Schedule } from "./schedule.ts";

export interface ExactOptions extends AutomaticOptions {
  /** Time for the solver; 60 s when left out. */
  readonly timeLimit?: Seconds;
  /** True: ask the solver also where the lower bound already proves the heuristic optimal. */
  readonly alwaysSolve?: boolean;
}

export type ExactResult =
  | {
      readonly ok: true;
      readonly schedule: Schedule;
      readonly makespan: Seconds;
      /** No schedule is faster; equal to the makespan when `optimal`. */
      readonly lowerBound: Seconds;
      /** False when the time ran out first; the schedule is then the best known. */
      readonly optimal: boolean;
    }
  | { readonly ok: false; readonly reason: string };

/** Open pairs beyond which the solver would not end in useful time. */
const mostBinaries = 600;
/** Actions beyond which not even their pairs are counted: there are half the square of them. */
const mostActions = 2000;

/**
 * The fastest split-backward schedule of a placement within the memory limit, among those that take
 * the microbatches of each stage in order (without loss where microbatches cost the same).
 * @throws TriremeError `PEER` when the package `highs` is not installed, `HIGHS` when it finds no optimum,
 * `SEARCH_SIZE` when the pipeline is too large to be solved exactly.
 */
export async function exactSchedule(o: ExactOptions): Promise<ExactResult> {
  const { timeLimit = 60 } = o;
  if (!(timeLimit > 0))
    throw new TriremeError("SCHEDULE", `timeLimit is ${timeLimit} s; it is above 0`);
  const heuristic = automaticZeroBubble(o);
  if (!heuristic.ok) return heuristic;
  if (heuristic.gap <= 1e-9 && o.alwaysSolve !== true) {
    const { schedule, makespan } = heuristic;
    return { ok: true, schedule, makespan, lowerBound: makespan, optimal: true };
  }
  const shop = automaticShop(o);
  if (shop.operations > mostActions) {
    throw new TriremeError(
      "SEARCH_SIZE",
      `${o.ranks} ranks with ${o.microbatches} microbatches have ${shop.operations} actions; the exact ` +
        `solver takes up to ${mostActions}: use fewer, or automaticZeroBubble`,
    );
  }
  const upper = heuristic.makespan * (1 + 1e-9);
  const unit = heuristic.makespan / (3 * o.microbatches) || 1;
  const program = mixedInteger(shop, upper, unit);
  if (program.binaries > mostBinaries) {
    throw new TriremeError(
      "SEARCH_SIZE",
      `${o.ranks} ranks with ${o.microbatches} microbatches leave ${program.binaries} orders open; the ` +
        `exact solver takes up to ${mostBinaries}: use fewer, or automaticZeroBubble`,
    );
  }
  const highs = await loadHighs();
  const solution = highs.solve(program.text, {
    output_flag: false,
    time_limit: timeLimit,
    mip_rel_gap: 1e-7,
    mip_abs_gap: 1e-7,
  });
  const optimal = solution.Status === "Optimal";
  if (!optimal && solution.Status !== "Time limit reached") {
    throw new TriremeError("HIGHS", `HiGHS ends with status "${solution.Status}", not an optimum`);
  }
  if (!optimal) {
    const { schedule, makespan, lowerBound } = heuristic;
    return { ok: true, schedule, makespan, lowerBound, optimal };
  }
  const order = program.orderOf((op) => {
    const column = solution.Columns[`t${op}`];
    return column !== undefined && "Primal" in column ? column.Primal : 0;
  });
  const evaluator = new Evaluator(shop);
  // The solver's tolerances may leave its order no better than the one it was to beat.
  const better = evaluator.fits(order) && evaluator.evaluate(order) < heuristic.makespan;
  const schedule = better ? scheduleOf(shop, order, "exact") : heuristic.schedule;
  const { makespan } = replay(schedule, o.costs);
  return { ok: true, schedule, makespan, lowerBound: makespan, optimal };
}

type Highs = Awaited<ReturnType<typeof loadHighsModule.default>>;

async function loadHighs(): Promise<Highs> {
  const missing = missingPeer("@trireme/schedulers/exact", "highs", "1.15.3");
  const { default: module } = await import("highs").catch(missing);
  // The package types its default export as CommonJS does; as an ES module it is the loader itself.
  const load = typeof module === "function" ? module : module.default;
  return load();
}
