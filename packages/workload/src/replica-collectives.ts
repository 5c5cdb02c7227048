/**
 * What replicas exchange: gradients once per step, and under ZeRO the weights that follow from them;
 * under ZeRO-3 weights and gradients of every microbatch (arXiv 1910.02054 §7). Dense parameters over the
 * data- and context-parallel ranks, routed experts' over those that hold the same experts.
 */
import type { CollectiveOperator, Pass } from "./operator.ts";
import { expertReplicas } from "./axes.ts";
import type { Plan } from "./plan.ts";
import { bytesOf, gradientCollective, reducedBytes } from "./precision.ts";
import type { StageParameters } from "./stage.ts";

/** The collectives of one rank that holds these parameters. */
export function replicaCollectives(p: Plan, held: StageParameters): CollectiveOperator[] {
  const list: CollectiveOperator[] = [];
  const frozenExperts = held.experts - held.trainableExperts;
  if (p.dp * p.cp > 1) {
    const frozen = held.total - held.trainable - frozenExperts;
    exchange(list, p, "dp", held.trainable - held.trainableExperts, frozen);
  }
  if (expertReplicas(p) > 1) exchange(list, p, "edp", held.trainableExperts, frozenExperts);
  return list;
}

/** Gradients of what is trained; weights of that, and under ZeRO-3 of what is frozen. */
function exchange(
  list: CollectiveOperator[],
  p: Plan,
  axis: "dp" | "edp",
  trained: number,
  frozen: number,
): void {
  const push = (kind: CollectiveOperator["kind"], pass: Pass, bytes: number): void => {
    if (bytes > 0) list.push({ kind, axis, bytes, pass, count: 1 });
  };
  const gradients = trained * reducedBytes(p);
  const weights = trained * bytesOf(p.precision);
  switch (p.zero) {
    case 0:
      push("all-reduce", "update", gradients);
      return;
    case 1:
    case 2:
      push(gradientCollective(p), "update", gradients);
      push("all-gather", "update", weights);
      return;
    case 3: {
      const all = weights + frozen * bytesOf(p.precision);
      push("all-gather", "forward", all);
      push("all-gather", "input-gradient", all);
      push("reduce-scatter", "weight-gradient", gradients);
      return;
    }
  }
}
