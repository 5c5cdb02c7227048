/**
 * How long a pipeline takes, in closed form. Every rank works on every microbatch; the slowest sets
 * the pace, and what the others do before their first and after their last comes on top, where chunks are dealt in
 * turn that of their first chunks: for equal stages 1F1B and
 * GPipe take (m + p − 1)(f + b), interleaving m(f + b) + (p − 1)(f + b)/v (SC'21 §2.2), and schedules that
 * put weight gradients where others wait so much less of it (`idle`). A schedule that is
 * replayed with the same costs may be passed in instead.
 */
import type { Seconds } from "@trireme/core";
import type { Plan } from "@trireme/workload";
import { microbatches, stagesOnRank } from "@trireme/workload";

/** What a pipeline is timed from. */
export interface PipelineCosts {
  readonly schedule: Plan["schedule"];
  /** Pipeline ranks. */
  readonly ranks: number;
  /** Chunks on each. */
  readonly chunks: number;
  readonly microbatches: number;
  /** Of one microbatch through each stage in model order, communication inside a stage included. */
  readonly forward: Float64Array;
  /** All backward work, recomputation included. */
  readonly backward: Float64Array;
  /** Of it, gradients of weights, that no other stage waits for. */
  readonly weightGradient: Float64Array;
  /** Stages on each rank. */
  readonly onRank: readonly (readonly number[])[];
  /** A boundary between two ranks. */
  readonly pointToPoint: Seconds;
  /** Sends run behind compute, and only fill and drain wait for them. */
  readonly overlapped: boolean;
  /**
   * Beside that, on every rank for every microbatch: passes over a vocabulary that is split over the ranks, and what of
   * their exchanges holds the rank up. No neighbour waits for them, so that fill and drain have none.
   */
  readonly vocabulary?: Seconds;
}

/** Seconds from the first forward to the last backward. */
export type Makespan = (costs: PipelineCosts) => Seconds;

/** The costs of a plan's pipeline. */
export function pipelineCosts(
  plan: Plan,
  costs: {
    readonly forward: Float64Array;
    readonly recompute: Float64Array;
    readonly inputGradient: Float64Array;
    readonly weightGradient: Float64Array;
    readonly pointToPoint: Seconds;
  },
): PipelineCosts {
  const { forward, inputGradient, weightGradient, recompute } = costs;
  const backward = new Float64Array(forward.length);
  for (let s = 0; s < backward.length; s++) {
    backward[s] = inputGradient[s]! + weightGradient[s]! + recompute[s]!;
  }
  return pipelineFrom(plan, { forward, backward, weightGradient }, costs.pointToPoint);
}

/** The same from the work of each stage. */
export function pipelineFrom(
  plan: Plan,
  work: Pick<PipelineCosts, "forward" | "backward" | "weightGradient">,
  pointToPoint: Seconds,
  onRank: PipelineCosts["onRank"] = Array.from({ length: plan.pp }, (_, rank) =>
    stagesOnRank(plan, rank),
  ),
): PipelineCosts {
  return {
    schedule: plan.schedule,
    ranks: plan.pp,
    chunks: plan.vpp,
    microbatches: microbatches(plan),
    ...work,
    onRank,
    pointToPoint,
    overlapped: plan.overlapPointToPoint,
  };
}

/**
 * Work of each pipeline rank on one microbatch: forward and backward of all its chunks, passes over a split vocabulary.
 */
export function workByRank(c: PipelineCosts): Float64Array {
  const work = sumByRank(c, c.forward);
  const backward = sumByRank(c, c.backward);
  const vocabulary = c.vocabulary ?? 0;
  for (let rank = 0; rank < work.length; rank++) work[rank]! += backward[rank]! + vocabulary;
  return work;
}

/** Of two copies of the stages, a microbatch runs through one. */
function sumByRank({ onRank }: PipelineCosts, of: Float64Array): Float64Array {
  const sums = new Float64Array(onRank.length);
  let held = 0;
  for (let rank = 0; rank < sums.length; rank++) {
    const stages = onRank[rank]!;
    held += stages.length;
    let sum = 0;
    for (let i = 0; i < stages.length; i++) sum += of[stages[i]!]!;
    sums[rank] = sum;
  }
  const share = of.length / held;
  if (share !== 1) for (let rank = 0; rank < sums.length; rank++) sums[rank]! *= share;
  return sums;
}

/** Time that one microbatch makes a rank wait for its messages: each chunk receives or sends twice. */
export function exposedSends(c: PipelineCosts): Seconds {
  return c.ranks === 1 || c.overlapped ? 0 : 2 * c.chunks * c.pointToPoint;
}

/** Work of a rank on one microbatch: forward, gradients of inputs with what is recomputed, and of weights. */
interface RankWork {
  readonly f: Seconds;
  readonly i: Seconds;
  readonly w: Seconds;
}

/**
 * What of the work of a rank others wait for at the ends of a pipeline: all of it, or so much less as a
 * schedule puts weight gradients there.
 */
function idle(c: PipelineCosts, { f, i, w }: RankWork): Seconds {
  const p = c.ranks;
  const others = p - 1;
  // Forward and input gradient alike.
  const forward = (f + i) / 2;
  switch (c.schedule) {
    case "gpipe":
    case "1f1b":
    case "interleaved":
    case "dfs-bfs":
    case "looped-bfs":
      return f + i + w;
    // f + i − w: one weight gradient fills each wait (arXiv 2401.10241 §2.2, Table 2).
    case "zb-h1":
    case "interleaved-zero-bubble":
      return Math.max(0, f + i - w);
    // No wait but that the last rank starts, and so ends, later: ranks update together (arXiv 2401.10241 §4).
    case "zb-h2":
    case "zb-v":
      return forward;
    // With half of the memory some waits come back (arXiv 2405.15362 §3): 1.5 p − 3.5 forwards of the schedule
    // as it is built, for equal f, i and w.
    case "v-half":
      return others === 0 ? 0 : (2 * (1.5 * p - 3.5) * forward) / others;
    // With a third, 2 p − 2.5; beside `cycle`, read off the schedule played with f, i and w that differ.
    case "v-min": {
      const ends =
        i >= f
          ? (2.25 * p - 1) * f + (1.5 * p - 4) * i
          : (0.625 * p - 7.5) * f + (3.125 * p + 2.5) * i;
      return others === 0 ? 0 : (ends + 0.25 * p * w) / others;
    }
    // A late start; (p/2 − 1)(F&B + B − 3W) beside it (arXiv 2412.19437, Table 2) is f for each other rank.
    case "dualpipe-v":
      return 2 * forward;
    case "dualpipe":
      return others === 0 ? 0 : ((p - 2) * forward) / others;
    // p − 2 forwards at the start; and between two units of p microbatches (arXiv 2107.06925 §3.2, direct
    // concatenation) what a forward and a backward differ by, as often, and once more to drain long backwards.
    case "chimera": {
      const longer = i + w - f;
      const between = longer > 0 ? c.microbatches / p : c.microbatches / p - 1;
      return others === 0 ? 0 : ((p - 2) * (f + between * Math.abs(longer))) / others;
    }
  }
}

/**
 * Time that a schedule gives each microbatch where stages have not forward, input gradient and weight
 * gradient alike: it repeats a pattern of slots as long as the longest of them in each, with half and with
 * a third of the memory (arXiv 2405.15362 §5: "bubbles" where they differ; the lengths are those of the
 * schedules played). The loop of waits that sets it runs through all ranks, and so counts a mean stage:
 * one long stage makes its rank's work the pace, and every other slot stays as it is.
 */
function cycle({ schedule, ranks, ...c }: PipelineCosts): Seconds {
  if (schedule !== "v-half" && schedule !== "v-min") return 0;
  // Of two and three ranks the patterns are others.
  if (ranks === 1 || (ranks === 2 && schedule === "v-half")) return 0;
  const f = mean(c.forward);
  const w = mean(c.weightGradient);
  const i = mean(c.backward) - w;
  const slot = Math.max(f, i);
  if (schedule === "v-min" && ranks > 3) return 6 * slot;
  return ranks === 2 ? f + 4 * i + w : 4 * slot + w;
}

function mean(of: Float64Array): number {
  let sum = 0;
  for (let stage = 0; stage < of.length; stage++) sum += of[stage]!;
  return sum / of.length;
}

/** Schedules in which the first chunk of a rank is the first at work and the last. */
const dealt: ReadonlySet<PipelineCosts["schedule"]> = new Set([
  "interleaved",
  "dfs-bfs",
  "looped-bfs",
  "interleaved-zero-bubble",
]);

/** The closed form. */
export function closedFormMakespan(c: PipelineCosts): Seconds {
  const forward = sumByRank(c, c.forward);
  const backward = sumByRank(c, c.backward);
  const weights = sumByRank(c, c.weightGradient);
  const sends = exposedSends(c);
  const inTurn = dealt.has(c.schedule);
  const ends = inTurn ? c : { forward, backward, weightGradient: weights };
  const workOf = (rank: number): RankWork => {
    const at = inTurn ? c.onRank[rank]![0]! : rank;
    const w = ends.weightGradient[at]!;
    return { f: ends.forward[at]!, i: ends.backward[at]! - w, w };
  };
  let pace = 0;
  let busiest = 0;
  let sum = 0;
  for (let rank = 0; rank < forward.length; rank++) {
    const work = forward[rank]! + backward[rank]!;
    if (work > pace) {
      pace = work;
      busiest = rank;
    }
    sum += idle(c, workOf(rank));
  }
  // One microbatch passes all ranks, through one chunk of each: the first, or an average one.
  const rampWork = (sum - idle(c, workOf(busiest))) / (inTurn ? 1 : c.chunks);
  const rampSends = c.ranks === 1 ? 0 : (c.ranks - 1) * 2 * c.pointToPoint;
  const each = Math.max(pace, cycle(c)) + (c.vocabulary ?? 0) + sends;
  return c.microbatches * each + rampWork + rampSends;
}
