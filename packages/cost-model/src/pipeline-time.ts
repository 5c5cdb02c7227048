/**
 * How long a pipeline takes, in closed form. Every rank works on every microbatch; the slowest sets
 * the pace, and the others' first forward and last backward come on top: for equal stages 1F1B and
 * GPipe take (m + p − 1)(f + b), interleaving m(f + b) + (p − 1)(f + b)/v (SC'21 §2.2). A schedule that is
 * replayed with the same costs may be passed in instead.
 */
import type { Seconds } from "@trireme/core";
import type { Plan } from "@trireme/workload";
import { microbatches } from "@trireme/workload";

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
  /** A boundary between two ranks. */
  readonly pointToPoint: Seconds;
  /** Sends run behind compute, and only fill and drain wait for them. */
  readonly overlapped: boolean;
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
  return pipelineFrom(plan, forward, backward, costs.pointToPoint);
}

/** The same from forward and all backward work of each stage. */
export function pipelineFrom(
  plan: Plan,
  forward: Float64Array,
  backward: Float64Array,
  pointToPoint: Seconds,
): PipelineCosts {
  return {
    schedule: plan.schedule,
    ranks: plan.pp,
    chunks: plan.vpp,
    microbatches: microbatches(plan),
    forward,
    backward,
    pointToPoint,
    overlapped: plan.overlapPointToPoint,
  };
}

/** Work of each pipeline rank on one microbatch: forward and backward of all its chunks. */
export function workByRank(c: PipelineCosts): Float64Array {
  const work = new Float64Array(c.ranks);
  for (let s = 0; s < c.forward.length; s++) {
    work[s % c.ranks] = work[s % c.ranks]! + c.forward[s]! + c.backward[s]!;
  }
  return work;
}

/** Time that one microbatch makes a rank wait for its messages: each chunk receives or sends twice. */
export function exposedSends(c: PipelineCosts): Seconds {
  return c.ranks === 1 || c.overlapped ? 0 : 2 * c.chunks * c.pointToPoint;
}

/** The closed form. */
export function closedFormMakespan(c: PipelineCosts): Seconds {
  const work = workByRank(c);
  const sends = exposedSends(c);
  let pace = 0;
  let sum = 0;
  for (const w of work) {
    pace = Math.max(pace, w);
    sum += w;
  }
  // One microbatch passes all ranks; with interleaving, through one chunk of each.
  const rampWork = (sum - pace) / c.chunks;
  const rampSends = c.ranks === 1 ? 0 : (c.ranks - 1) * 2 * c.pointToPoint;
  return c.microbatches * (pace + sends) + rampWork + rampSends;
}
