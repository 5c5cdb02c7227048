/**
 * Gradients over the replicas, once per step. Without overlap they wait for the last backward, and
 * ZeRO's gathering of the new weights for the optimizer. With overlap they go out in buckets behind
 * the last backward and the next forward of each chunk, and what does not fit there, or one chunk's
 * worth at the ends, is exposed (arXiv 2402.15627 §3.2: 1/(2 vpp) at best).
 */
import type { Seconds } from "@trireme/core";
import {
  type Model,
  type Plan,
  bytesOf,
  expertReplicas,
  gradientCollective,
  reducedBytes,
} from "@trireme/workload";
import { overlapped } from "./overlap.ts";
import { type PlanCosts, sumOnRank } from "./plan-costs.ts";

/** Exposed data-parallel time of the slowest pipeline rank, and the sum of a tied embedding's gradients. */
export function exposedDataParallel(model: Model, plan: Plan, costs: PlanCosts): Seconds {
  let worst = 0;
  for (const rank of costs.own.list.rankKinds)
    worst = Math.max(worst, exposedOnRank(plan, costs, rank, model));
  return worst + costs.own.communication.firstAndLast(costs.sharedBytes);
}

function exposedOnRank(plan: Plan, costs: PlanCosts, rank: number, model: Model): Seconds {
  if (plan.zero === 3) return 0;
  const { kinds, own } = costs;
  const { kindOf, onRank } = own.list;
  const network = own.communication;
  const shared = plan.zero > 0;
  let reduce = 0;
  let gather = 0;
  for (const [axis, field, replicas] of [
    ["dp", "gradientBytes", plan.dp * plan.cp],
    ["edp", "expertGradientBytes", expertReplicas(plan)],
  ] as const) {
    const gradients = sumOnRank(kinds, own.list, rank, field);
    if (replicas === 1 || gradients === 0) continue;
    const weights = (gradients / reducedBytes(plan)) * bytesOf(plan.precision);
    reduce += network.collective(gradientCollective(plan), axis, gradients);
    if (shared) gather += network.collective("all-gather", axis, weights);
  }
  let forward = 0;
  let backward = 0;
  for (const s of onRank[rank]!) {
    const k = kinds[kindOf[s]!]!;
    forward += k.forward;
    backward += k.inputGradient + k.weightGradient + k.recompute;
  }
  // Whole chunks without virtual stages are cut into buckets by the framework: a layer's at least.
  const pieces = plan.vpp > 1 ? plan.vpp : Math.max(1, Math.floor(model.layers / plan.pp));
  return exposedBuckets(plan, { reduce, gather, forward, backward, pieces });
}

/** What of sums and gathered weights outlasts one microbatch's work beside them, in so many pieces. */
export function exposedBuckets(
  plan: Plan,
  o: Readonly<Record<"reduce" | "gather" | "forward" | "backward" | "pieces", number>>,
): Seconds {
  const { reduce, gather, forward, backward, pieces } = o;
  if (!plan.overlapDataParallel) return reduce + gather;
  const share = 1 - 1 / pieces;
  return (
    overlapped(reduce, backward * share, reduce / pieces) +
    overlapped(gather, forward * share, gather / pieces)
  );
}
