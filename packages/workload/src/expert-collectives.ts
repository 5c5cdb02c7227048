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
import type { Plan } from "./plan.ts";
import { bytesOf } from "./precision.ts";
import type { LayerCounts, Push } from "./stage-collectives.ts";

/** Tokens that share a scale of each channel on the way back, in FP8 (MegaScale-MoE §5). */
const scaleGroup = 128;

/** Bytes of a row with its scales: one of a token on the way forward, one of each channel of a group on the way back. */
function rowBytes({ hidden }: Model, p: Plan, pass: Pass): number {
  const precision = p.dispatchPrecision ?? p.precision;
  if (precision !== "fp8") return hidden * bytesOf(precision);
  return hidden + 4 * (pass === "input-gradient" ? hidden / scaleGroup : 1);
}

/** Appends the exchanges of `layers` mixtures of experts. */
export function expertCollectives(push: Push, m: Model, p: Plan, layers: LayerCounts): void {
  const { exchanged, sent } = expertRows(m.experts!, p);
  const exchange = (pass: Pass, there: number, back: number): void => {
    const row = rowBytes(m, p, pass);
    const gathered = rankTokens(p) * p.ep * row;
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
  if (p.recompute === "full" || p.recompute === "experts") {
    exchange("recompute", layers.recomputed, layers.recomputed);
  }
  // The inputs of the experts' products are fetched again; their results are not kept at all.
  if (p.recompute === "rematerialise") exchange("recompute", layers.recomputed, 0);
  exchange("input-gradient", layers.all, layers.all);
}
