/**
 * How tokens travel to routed experts and back: each row to its experts' ranks and back (all-to-all, a
 * token once to a rank where it is unique), or
 * every token to every rank of the group, and sums of results back (all-gather and reduce-scatter, which
 * moves less when top-k is large: MegaScale-MoE §3.2); inside an expert that is split, a gather and a
 * reduce-scatter more. Backward mirrors forward.
 */
import { expertRows, rankTokens } from "./expert-operators.ts";
import type { Model } from "./model.ts";
import type { Pass } from "./operator.ts";
import { type Plan, bytesOf } from "./plan.ts";
import type { LayerCounts, Push } from "./stage-collectives.ts";

/** Appends the exchanges of `layers` mixtures of experts. */
export function expertCollectives(push: Push, m: Model, p: Plan, layers: LayerCounts): void {
  const row = m.hidden * bytesOf(p.precision);
  const { exchanged, sent } = expertRows(m.experts!, p);
  const gathered = rankTokens(p) * p.ep * row;
  const exchange = (pass: Pass, there: number, back: number): void => {
    if (p.ep > 1 && p.dispatch !== "all-gather") {
      push("all-to-all", "ep", pass, exchanged * row, there + back);
    } else if (p.ep > 1) {
      push("all-gather", "ep", pass, gathered, there);
      push("reduce-scatter", "ep", pass, gathered, back);
    }
    if (p.etp > 1) {
      push("all-gather", "etp", pass, sent * p.etp * row, there);
      push("reduce-scatter", "etp", pass, sent * p.etp * row, back);
    }
  };
  exchange("forward", layers.all, layers.all);
  if (p.recompute === "full") exchange("recompute", layers.recomputed, layers.recomputed);
  // The inputs of the experts' products are fetched again; their results are not kept at all.
  if (p.recompute === "rematerialise") exchange("recompute", layers.recomputed, 0);
  exchange("input-gradient", layers.all, layers.all);
}
