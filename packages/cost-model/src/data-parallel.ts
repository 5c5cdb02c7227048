/**
 * Gradients over the replicas, once per step. Without overlap they wait for the last backward, and
 * ZeRO's gathering of the new weights for the optimizer. With overlap they go out in buckets behind
 * the last backward and the next forward of each chunk, and what does not fit there, or one chunk's
 * worth at the ends, is exposed (arXiv 2402.15627 §3.2: 1/(2 vpp) at best).
 */
import type { Seconds } from "@trireme/core";
import { type Model, type Plan, bytesOf } from "@trireme/workload";
import { overlapped } from "./overlap.ts";
import type { StepCosts } from "./step-costs.ts";

/** Exposed data-parallel time of the slowest pipeline rank, and the sum of a tied embedding's gradients. */
export function exposedDataParallel(model: Model, plan: Plan, costs: StepCosts): Seconds {
  let worst = 0;
  for (let rank = 0; rank < plan.pp; rank++)
    worst = Math.max(worst, exposedOnRank(plan, costs, rank, model));
  return worst + costs.communication.firstAndLast(costs.sharedBytes);
}

function exposedOnRank(plan: Plan, costs: StepCosts, rank: number, model: Model): Seconds {
  if (plan.dp * plan.cp === 1 || plan.zero === 3) return 0;
  const gradients = costs.gradientBytes[rank]!;
  const weights = (gradients / bytesOf(plan.gradientPrecision)) * bytesOf(plan.precision);
  const { collective } = costs.communication;
  const [reduce, gather] =
    plan.zero === 0
      ? [collective("all-reduce", "dp", gradients), 0]
      : [collective("reduce-scatter", "dp", gradients), collective("all-gather", "dp", weights)];
  if (!plan.overlapDataParallel) return reduce + gather;
  let forward = 0;
  let backward = 0;
  for (let s = rank; s < costs.forward.length; s += plan.pp) {
    forward += costs.forward[s]!;
    backward += costs.inputGradient[s]! + costs.weightGradient[s]! + costs.recompute[s]!;
  }
  // Whole chunks without virtual stages are cut into buckets by the framework: a layer's at least.
  const pieces = plan.vpp > 1 ? plan.vpp : Math.max(1, Math.floor(model.layers / plan.pp));
  const share = 1 - 1 / pieces;
  return (
    overlapped(reduce, backward * share, reduce / pieces) +
    overlapped(gather, forward * share, gather / pieces)
  );
}
