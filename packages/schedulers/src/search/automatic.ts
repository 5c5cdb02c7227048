/**
 * Automatic zero bubble: the best order of F, I and W found for given costs and memory on a given
 * placement of the stages, with a lower bound. Greedy rules and named schedules of the same placement
 * give starting points; local search improves the best of them.
 */
import { type Bytes, type Seconds, TriremeError, createRng } from "@trireme/core";
import { type ReplayCosts, executionCosts, replay } from "../replay.ts";
import { ScheduleBuilder, type ScheduleShape, checkCounts } from "../schedule-builder.ts";
import { type Schedule, loopPlacement, vPlacement } from "../schedule.ts";
import { vHalf, vMin } from "../controllable-memory.ts";
import { dfsBfs } from "../dfs-bfs.ts";
import { loopedBfs } from "../looped-bfs.ts";
import { zbV } from "../zb-v.ts";
import { interleavedZeroBubble, zbH1, zbH2 } from "../zero-bubble.ts";
import { greedyOrder, greedyRules } from "./greedy.ts";
import { Evaluator, type JobShop, type Order, jobShop, orderOf, scheduleOf } from "./job-shop.ts";
import { localSearch } from "./local-search.ts";
import { lowerBound } from "./lower-bound.ts";

export interface AutomaticOptions {
  readonly ranks: number;
  readonly microbatches: number;
  /** `loop`: stage s on rank s mod P. `v`: two stages per rank, placed as a V. `loop` when left out. */
  readonly placement?: "loop" | "v";
  /** Stages per rank of a loop; 1 when left out. A V has 2. */
  readonly chunks?: number;
  /** Costs per stage; inputGradient and weightGradient are needed. `activation` is 1 if left out. */
  readonly costs: ReplayCosts;
  /** Most activations of each rank, in the unit of `costs.activation`; Infinity when left out. */
  readonly memoryLimit?: Bytes | ((rank: number) => Bytes);
  /** Time to spend on local search, in units of about a tenth of a second; 1 when left out. */
  readonly effort?: number;
  /** Seed of the local search; 0 when left out. */
  readonly seed?: number;
}

export type AutomaticResult =
  | {
      readonly ok: true;
      readonly schedule: Schedule;
      readonly makespan: Seconds;
      /** No schedule of this placement that takes the microbatches in order is faster. */
      readonly lowerBound: Seconds;
      /** (makespan − lowerBound) / lowerBound. */
      readonly gap: number;
    }
  | { readonly ok: false; readonly reason: string };

/** Operations that local search visits per unit of effort. */
const visitsPerEffort = 6e6;
/** Starting points of local search. */
const starts = 4;

/**
 * Searches for the fastest split-backward schedule within the memory limit. Deterministic.
 * @throws TriremeError `SCHEDULE`, `COST` for counts or costs out of range.
 */
export function automaticZeroBubble(o: AutomaticOptions): AutomaticResult {
  const { effort = 1 } = o;
  if (!(effort >= 0 && effort < Infinity))
    throw new TriremeError("SCHEDULE", `effort is ${effort}; it is finite and at least 0`);
  const shop = automaticShop(o);
  const infeasible = memoryReason(shop);
  if (infeasible !== undefined) return { ok: false, reason: infeasible };
  const bound = lowerBound(shop, { uniform: isUniform(shop) });
  const evaluator = new Evaluator(shop);
  const found: { order: Order; makespan: number }[] = [];
  const consider = (order: Order | undefined): void => {
    if (order === undefined || !evaluator.fits(order)) return;
    const makespan = evaluator.evaluate(order);
    if (makespan < Infinity) found.push({ order, makespan });
  };
  for (const named of namedSchedules(o)) consider(orderOf(named));
  for (const rule of greedyRules(shop)) consider(greedyOrder(shop, rule));
  consider(oneByOne(shop));
  found.sort((a, b) => a.makespan - b.makespan);
  let best = found[0];
  if (best === undefined)
    return { ok: false, reason: "no order of the stages fits the memory limit" };
  const rng = createRng(o.seed ?? 0);
  const budget = (effort * visitsPerEffort) / starts;
  for (const [k, start] of distinct(found, starts).entries()) {
    if (best.makespan <= bound * (1 + 1e-9)) break;
    const improved = localSearch(shop, start.order, { budget, bound, rng: rng.fork(k) });
    if (improved.makespan < best.makespan) best = improved;
  }
  const schedule = scheduleOf(shop, best.order, "automatic-zero-bubble");
  const { makespan } = replay(schedule, o.costs);
  return { ok: true, schedule, makespan, lowerBound: bound, gap: gapOf(makespan, bound) };
}

/** How far a makespan is above a lower bound, as a fraction of the bound; 0 for rounding errors. */
export function gapOf(makespan: Seconds, bound: Seconds): number {
  return bound > 0 ? Math.max(0, makespan / bound - 1) : makespan > 0 ? Infinity : 0;
}

/** The job shop of the options, checked. */
export function automaticShop(o: AutomaticOptions): JobShop {
  const { ranks, microbatches, chunks = o.placement === "v" ? 2 : 1 } = o;
  checkCounts("automatic-zero-bubble", { ranks, chunks, microbatches });
  if (o.placement === "v" && chunks !== 2) {
    throw new TriremeError("SCHEDULE", `a V has 2 stages per rank, not ${chunks}; use 2 or a loop`);
  }
  const stages = chunks * ranks;
  const shape: ScheduleShape = {
    name: "automatic-zero-bubble",
    ranks,
    chunks,
    microbatches,
    stages,
    stageRank: o.placement === "v" ? vPlacement(ranks, stages) : loopPlacement(ranks, stages),
    directions: 1,
    forwardOnly: false,
  };
  const { memoryLimit = Infinity } = o;
  const limits = Float64Array.from({ length: ranks }, (_, r) => {
    const limit = typeof memoryLimit === "number" ? memoryLimit : memoryLimit(r);
    if (!(limit >= 0))
      throw new TriremeError("COST", `memory limit of rank ${r} is ${limit}; it is at least 0`);
    return limit;
  });
  const { activation = 1 } = o.costs;
  const bytes = Float64Array.from({ length: stages }, (_, s) => {
    const size = typeof activation === "number" ? activation : activation(s);
    if (size >= 0 && size < Infinity) return size;
    throw new TriremeError(
      "COST",
      `activation of stage ${s} is ${size}; it is finite and at least 0`,
    );
  });
  // A row with every kind in it makes every cost required.
  const probe = new ScheduleBuilder({ ...shape, ranks: 1 }, 4);
  for (const kind of [0, 1, 2]) probe.add(kind, 0, 0);
  probe.endRow();
  const costs = executionCosts({ ...probe.finish(), stageRank: shape.stageRank }, o.costs);
  return jobShop(shape, costs, bytes, limits);
}

/** Why no order fits the memory, or undefined. */
function memoryReason(shop: JobShop): string | undefined {
  const { ranks, stages, microbatches: M, stageRank } = shop.shape;
  const least = new Float64Array(ranks);
  for (let s = 0; s < stages; s++) least[stageRank[s]!]! += shop.memory[3 * s * M]!;
  for (let r = 0; r < ranks; r++) {
    if (least[r]! > shop.limit[r]! * (1 + 1e-12)) {
      return `rank ${r} needs ${least[r]} for the activations of one microbatch; its limit is ${shop.limit[r]}`;
    }
  }
  return undefined;
}

/** Whether the operations of a stage cost the same for all microbatches. */
export function isUniform(shop: JobShop): boolean {
  const { stages, microbatches: M } = shop.shape;
  for (let s = 0; s < stages; s++) {
    for (let m = 1; m < M; m++) {
      for (let k = 0; k < 3; k++) {
        if (shop.duration[3 * (s * M + m) + k] !== shop.duration[3 * s * M + k]) return false;
      }
    }
  }
  return true;
}

/** Named schedules of the same placement, where they can have these counts. */
function namedSchedules(o: AutomaticOptions): Schedule[] {
  const { ranks, microbatches, chunks = 1 } = o;
  const counts = { ranks, microbatches };
  if (o.placement === "v") return [zbV, vHalf, vMin].map((f) => f(counts));
  if (chunks === 1) return [zbH1(counts), zbH2(counts)];
  const rounds = Math.max(1, Math.floor(microbatches / ranks));
  return [
    loopedBfs({ ...counts, chunks }),
    dfsBfs({ ...counts, chunks }),
    ...(microbatches % rounds === 0 ? [interleavedZeroBubble({ ...counts, chunks })] : []),
  ];
}

/** One microbatch after the other: needs the least memory of all orders. */
function oneByOne(shop: JobShop): Order {
  const { ranks, stages, microbatches: M, stageRank } = shop.shape;
  const rows: number[][] = Array.from({ length: ranks }, () => []);
  for (let m = 0; m < M; m++) {
    for (let s = 0; s < stages; s++) rows[stageRank[s]!]!.push(3 * (s * M + m));
    for (let s = stages - 1; s >= 0; s--) {
      rows[stageRank[s]!]!.push(3 * (s * M + m) + 1, 3 * (s * M + m) + 2);
    }
  }
  const offsets = new Int32Array(ranks + 1);
  for (let r = 0; r < ranks; r++) offsets[r + 1] = offsets[r]! + rows[r]!.length;
  return { offsets, row: Int32Array.from(rows.flat()) };
}

/** The first few of different makespan, so that the starts differ. */
function distinct<T extends { readonly makespan: number }>(
  sorted: readonly T[],
  most: number,
): T[] {
  const out: T[] = [];
  for (const item of sorted) {
    if (out.length < most && item.makespan !== out.at(-1)?.makespan) out.push(item);
  }
  return out;
}
