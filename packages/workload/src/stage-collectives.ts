/**
 * The collectives of a stage. Tensor parallelism (arXiv 1909.08053 §3): one all-reduce of the
 * activation after attention and one after the feed-forward block, and two in backward; sequence parallelism (arXiv 2205.05198
 * §4.2) puts an all-gather and a reduce-scatter in place of each, and gathers the saved inputs once
 * more for the weight gradients. Data parallelism: gradients once per step, and under ZeRO-3 weights
 * and gradients of every microbatch (arXiv 1910.02054 §7).
 */
import type { Model } from "./model.ts";
import type { CollectiveOperator, Pass } from "./operator.ts";
import { normParameters } from "./parameters.ts";
import { type Plan, bytesOf } from "./plan.ts";
import { type Stage, stageParameters, vocabShard } from "./stage.ts";

/** The collectives of one microbatch through the stage; those with pass "update" come once per step. */
export function stageCollectives(m: Model, p: Plan, s: Stage): readonly CollectiveOperator[] {
  const list: CollectiveOperator[] = [];
  if (p.tp > 1) tensorParallel(list, m, p, s);
  if (p.cp > 1) contextParallel(list, m, p, s);
  if (p.dp * p.cp > 1) dataParallel(list, m, p, s);
  return list;
}

function tensorParallel(list: CollectiveOperator[], m: Model, p: Plan, s: Stage): void {
  const tokens = (p.microbatch * p.sequence) / p.cp;
  const activation = tokens * m.hidden * bytesOf(p.precision);
  const push = (
    kind: CollectiveOperator["kind"],
    pass: Pass,
    bytes: number,
    count: number,
  ): void => {
    if (count > 0) list.push({ kind, axis: "tp", bytes, pass, count });
  };
  const recomputed = p.recompute === "full" ? 2 * s.layers : 0;
  const embedding = s.embedding ? 1 : 0;
  const head = s.head ? 1 : 0;
  if (p.sequenceParallel) {
    push("all-gather", "forward", activation, 2 * s.layers + head);
    push("reduce-scatter", "forward", activation, 2 * s.layers + embedding);
    push(
      "all-gather",
      "recompute",
      activation,
      p.recompute === "operators" ? 2 * s.layers : recomputed,
    );
    push("reduce-scatter", "recompute", activation, recomputed);
    push("all-gather", "input-gradient", activation, 2 * s.layers);
    push("reduce-scatter", "input-gradient", activation, 2 * s.layers + head);
    // The inputs of QKV, first feed-forward product and logits are kept as the rank's part.
    push("all-gather", "weight-gradient", activation, 2 * s.layers + head + embedding);
    const norms =
      (2 * s.layers + head) * normParameters(m) + (m.bias ? 2 * s.layers * m.hidden : 0);
    push("all-reduce", "update", norms * bytesOf(p.gradientPrecision), norms > 0 ? 1 : 0);
  } else {
    push("all-reduce", "forward", activation, 2 * s.layers + embedding);
    push("all-reduce", "recompute", activation, recomputed);
    push("all-reduce", "input-gradient", activation, 2 * s.layers + head);
  }
  // The loss exchanges each token's maximum, target logit and sum of exponentials.
  // Or every rank gets all logits.
  const logits = tokens * vocabShard(m, p) * p.tp * bytesOf(p.precision);
  push("all-reduce", "forward", 4 * tokens, p.vocabParallelLoss ? 3 * head : 0);
  push("all-gather", "forward", logits, p.vocabParallelLoss ? 0 : head);
}

/** Keys and values of a sample meet every query: gathered in both directions, their gradients scattered. */
function contextParallel(list: CollectiveOperator[], m: Model, p: Plan, s: Stage): void {
  if (s.layers === 0) return;
  const bytes =
    (2 * p.microbatch * p.sequence * m.kvHeads * m.headDim * bytesOf(p.precision)) / p.tp;
  const push = (kind: CollectiveOperator["kind"], pass: Pass): void => {
    list.push({ kind, axis: "cp", bytes, pass, count: s.layers });
  };
  push("all-gather", "forward");
  if (p.recompute === "selective" || p.recompute === "full") push("all-gather", "recompute");
  push("all-gather", "input-gradient");
  push("reduce-scatter", "input-gradient");
}

function dataParallel(list: CollectiveOperator[], m: Model, p: Plan, s: Stage): void {
  const held = stageParameters(m, p, s).total;
  if (held === 0) return;
  const gradients = held * bytesOf(p.gradientPrecision);
  const weights = held * bytesOf(p.precision);
  const push = (kind: CollectiveOperator["kind"], pass: Pass, bytes: number): void => {
    list.push({ kind, axis: "dp", bytes, pass, count: 1 });
  };
  switch (p.zero) {
    case 0:
      push("all-reduce", "update", gradients);
      return;
    case 1:
    case 2:
      push("reduce-scatter", "update", gradients);
      push("all-gather", "update", weights);
      return;
    case 3:
      push("all-gather", "forward", weights);
      push("all-gather", "input-gradient", weights);
      push("reduce-scatter", "weight-gradient", gradients);
      return;
  }
}
