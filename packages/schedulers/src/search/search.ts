/**
 * The best schedule for given costs and memory: every named schedule that fits, and the automatic
 * search on both placements, compared by replay, with a lower bound over all of them.
 */
import { type Bytes, type Seconds, TriremeError } from "@trireme/core";
import { createSchedule, scheduleNames } from "../create-schedule.ts";
import { type Cost, type ReplayCosts, replay } from "../replay.ts";
import type { Schedule } from "../schedule.ts";
import { automaticShop, automaticZeroBubble, gapOf, isUniform } from "./automatic.ts";
import { lowerBound } from "./lower-bound.ts";

export interface SearchOptions {
  readonly ranks: number;
  readonly microbatches: number;
  /**
   * Costs of a pipeline with this many stages per rank; inputGradient and weightGradient are needed,
   * so that split backwards can be compared. Plain costs are those of one stage per rank;
   * where they are numbers, each of V stages costs a V-th (transfers excepted).
   */
  readonly costs: ReplayCosts | ((chunks: number) => ReplayCosts);
  /**
   * Most activations of each rank, in the unit of `activation`, which is 1 for all stages of a rank
   * together when left out: the limit then counts microbatches, as for 1F1B.
   */
  readonly memoryLimit?: Bytes | ((rank: number) => Bytes);
  /** Stages per rank to try; [1, 2] when left out. */
  readonly chunks?: readonly number[];
  /** Whether each rank may hold two copies of its weights (DualPipe); false when left out. */
  readonly bidirectional?: boolean;
  /** Time for local search on each placement, as in `automaticZeroBubble`. */
  readonly effort?: number;
  readonly seed?: number;
}

/** One schedule that was tried. */
export interface Candidate {
  readonly name: string;
  readonly schedule: Schedule;
  readonly makespan: Seconds;
  /** Most bytes that a rank holds, in the unit of `activation`. */
  readonly peakBytes: Bytes;
}

export type SearchResult =
  | {
      readonly ok: true;
      readonly best: Candidate;
      /** All that fit the memory, fastest first. */
      readonly candidates: readonly Candidate[];
      /** No split or whole backward schedule on any placement tried is faster. */
      readonly lowerBound: Seconds;
      readonly gap: number;
    }
  | { readonly ok: false; readonly reason: string };

/**
 * Searches all schedules; never worse than the best named one that fits.
 * @throws TriremeError `SCHEDULE`, `COST` for counts or costs out of range.
 */
export function searchSchedule(o: SearchOptions): SearchResult {
  const { chunks: counts = [1, 2] } = o;
  if (counts.length === 0 && o.bidirectional !== true) {
    throw new TriremeError(
      "SCHEDULE",
      "no number of stages per rank to try; give chunks such as [1, 2]",
    );
  }
  const candidates: Candidate[] = [];
  let bound = Infinity;
  const reasons = new Set<string>();
  const consider = (name: string, schedule: Schedule, costs: ReplayCosts): void => {
    if (schedule.forwardOnly) return;
    const r = replay(schedule, costs);
    const over = r.peakBytes.findIndex((bytes, rank) => bytes > limitOf(o, rank) * (1 + 1e-12));
    if (over >= 0) {
      reasons.add(
        `${name} holds ${r.peakBytes[over]} on rank ${over}, more than ${limitOf(o, over)}`,
      );
    } else {
      candidates.push({
        name,
        schedule,
        makespan: r.makespan,
        peakBytes: Math.max(...r.peakBytes),
      });
    }
  };
  for (const chunks of counts) {
    const costs = chunkCosts(o, chunks);
    if (costs === undefined) {
      reasons.add(`costs that are functions of the stage hold for 1 stage per rank, not ${chunks}`);
      continue;
    }
    for (const name of scheduleNames) {
      const schedule = named(name, o, chunks);
      if (schedule?.chunks === chunks && schedule.directions === 1) consider(name, schedule, costs);
    }
    for (const placement of placementsOf(chunks)) {
      const found = automaticZeroBubble({ ...o, costs, placement, chunks });
      if (found.ok) {
        consider(found.schedule.name, found.schedule, costs);
      } else {
        reasons.add(found.reason);
      }
    }
    bound = Math.min(bound, boundOf(o, chunks, costs));
  }
  if (o.bidirectional === true) {
    // Each stage of either direction is as large as the one stage of a rank in a loop.
    const costs = bothDirections(o, chunkCosts(o, 1));
    if (costs !== undefined) {
      for (const name of scheduleNames) {
        const schedule = named(name, o, 2);
        if (schedule?.directions === 2) consider(name, schedule, costs);
      }
      bound = Math.min(bound, workBound(o, costs));
    }
  }
  candidates.sort((a, b) => a.makespan - b.makespan);
  const best = candidates[0];
  if (best === undefined) return { ok: false, reason: [...reasons].join("; ") };
  return { ok: true, best, candidates, lowerBound: bound, gap: gapOf(best.makespan, bound) };
}

/** Costs in which the stages of the second direction cost what those of the first do. */
function bothDirections(o: SearchOptions, costs: ReplayCosts | undefined): ReplayCosts | undefined {
  if (costs === undefined) return undefined;
  const P = o.ranks;
  const wrap = (cost: Cost): Cost =>
    typeof cost === "number" ? cost : (stage, m) => cost(stage % P, m);
  const { activation = 1, overlapped, pointToPoint } = costs;
  return {
    ...costs,
    forward: wrap(costs.forward),
    ...(costs.backward === undefined ? {} : { backward: wrap(costs.backward) }),
    ...(costs.inputGradient === undefined ? {} : { inputGradient: wrap(costs.inputGradient) }),
    ...(costs.weightGradient === undefined ? {} : { weightGradient: wrap(costs.weightGradient) }),
    ...(typeof overlapped === "function"
      ? { overlapped: (f: number, b: number) => overlapped(f % P, b % P) }
      : {}),
    ...(typeof pointToPoint === "function"
      ? { pointToPoint: (from: number, to: number) => pointToPoint(from % P, to % P) }
      : {}),
    activation: typeof activation === "number" ? activation : (stage) => activation(stage % P),
  };
}

/** The work of all ranks spread evenly: no schedule of any placement is faster. */
function workBound(o: SearchOptions, costs: ReplayCosts): Seconds {
  const s = automaticShop({ ...o, costs, placement: "loop", chunks: 1 });
  const work = s.duration.reduce((a, b) => a + b, 0);
  return (work / o.ranks) * cheapest(o.ranks, o, costs);
}

/** Ways to place this many stages per rank. */
function placementsOf(chunks: number): readonly ("loop" | "v")[] {
  return chunks === 2 ? ["loop", "v"] : ["loop"];
}

function limitOf(o: SearchOptions, rank: number): number {
  const { memoryLimit = Infinity } = o;
  return typeof memoryLimit === "number" ? memoryLimit : memoryLimit(rank);
}

/** The named schedule, or undefined where it cannot have these counts. */
function named(name: string, o: SearchOptions, chunks: number): Schedule | undefined {
  try {
    return createSchedule(name, { ranks: o.ranks, microbatches: o.microbatches, chunks });
  } catch (error) {
    if (error instanceof TriremeError && error.code === "SCHEDULE") return undefined;
    throw error;
  }
}

/** Costs per stage when each rank holds `chunks` of them; undefined where they are not known. */
function chunkCosts(o: SearchOptions, chunks: number): ReplayCosts | undefined {
  if (typeof o.costs === "function") {
    const costs = o.costs(chunks);
    return { ...costs, activation: costs.activation ?? 1 / chunks };
  }
  const { costs } = o;
  const { activation = 1 } = costs;
  if (chunks === 1) return { ...costs, activation };
  const { backward, overlapped, ...rest } = costs;
  if (typeof overlapped === "function" || typeof activation === "function") return undefined;
  const forward = share(rest.forward, chunks);
  const inputGradient = share(rest.inputGradient, chunks);
  const weightGradient = share(rest.weightGradient, chunks);
  if (forward === undefined || inputGradient === undefined || weightGradient === undefined) {
    return undefined;
  }
  if (typeof backward === "function") return undefined;
  return {
    ...rest,
    forward,
    inputGradient,
    weightGradient,
    ...(backward === undefined ? {} : { backward: backward / chunks }),
    ...(overlapped === undefined ? {} : { overlapped: overlapped / chunks }),
    activation: activation / chunks,
  };
}

function share(cost: Cost | undefined, chunks: number): number | undefined {
  return typeof cost === "number" ? cost / chunks : undefined;
}

/**
 * The bound over the placements with this many stages per rank. A whole backward that costs less than
 * its halves, or a pair less than its parts, shortens all operations in proportion first.
 */
function boundOf(o: SearchOptions, chunks: number, costs: ReplayCosts): Seconds {
  return Math.min(
    ...placementsOf(chunks).map((placement) => {
      const shop = automaticShop({ ...o, costs, placement, chunks });
      return lowerBound(shop, { uniform: isUniform(shop) }) * cheapest(shop.shape.stages, o, costs);
    }),
  );
}

/** The least ratio of what a whole backward or a pair may cost to what its parts cost; at most 1. */
function cheapest(stages: number, o: SearchOptions, costs: ReplayCosts): number {
  const { overlapped } = costs;
  const forward = new Float64Array(stages);
  const backward = new Float64Array(stages);
  const at = (cost: Cost, s: number, m: number): number =>
    typeof cost === "function" ? cost(s, m) : cost;
  let ratio = 1;
  for (let s = 0; s < stages; s++) {
    for (let m = 0; m < o.microbatches; m++) {
      const halves = at(costs.inputGradient ?? 0, s, m) + at(costs.weightGradient ?? 0, s, m);
      const whole = costs.backward === undefined ? halves : at(costs.backward, s, m);
      if (halves > 0) ratio = Math.min(ratio, whole / halves);
      forward[s] = Math.max(forward[s]!, at(costs.forward, s, m));
      backward[s] = Math.max(backward[s]!, halves);
    }
  }
  if (overlapped === undefined) return ratio;
  for (let f = 0; f < stages; f++) {
    for (let b = 0; b < stages; b++) {
      const apart = forward[f]! + backward[b]!;
      const pair = typeof overlapped === "number" ? overlapped : overlapped(f, b);
      if (apart > 0) ratio = Math.min(ratio, pair / apart);
    }
  }
  return ratio;
}
