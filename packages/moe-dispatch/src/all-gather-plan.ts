/**
 * The other way to dispatch (MegaScale-MoE §4.2): all-gather every token to every rank, scatter
 * locally to the rank's experts; afterwards gather each token's results locally and reduce-scatter
 * the sums. Bytes do not depend on top-k, so it wins when tokens go to most of the ranks anyway.
 * It uses the same `DispatchPlan`: a rank's expert rows name their tokens in the gathered batch.
 * Any capacity or drop policy works with it, since those only change the choices.
 */
import type { DispatchPlan } from "./dispatch-plan.ts";
import { type Floats, floatsLike } from "./routing.ts";
import { requireInteger, requireLength, requireNumber } from "./shape.ts";

/** Rows (tokens or token sums) that leave a rank per layer and direction, on average. */
export interface DispatchChoice {
  readonly dispatch: "all-to-all" | "all-gather";
  /** k·(n − 1)/n per token the rank holds, each way. */
  readonly allToAll: number;
  /** n − 1 per token the rank holds, each way. */
  readonly allGather: number;
}

/**
 * Chooses by volume and bandwidth: all-to-all moves k/n of what all-gather moves, at `efficiency` of
 * its bandwidth. The default 0.75 puts the crossing at k > 6 for n = 8, as measured for Mixtral-8x7B
 * (MegaScale-MoE); 1 compares volumes, k > n.
 */
export function chooseDispatch(o: {
  readonly topK: number;
  readonly ranks: number;
  readonly efficiency?: number;
}): DispatchChoice {
  requireInteger("topK", o.topK, 1);
  requireInteger("ranks", o.ranks, 1);
  const efficiency = o.efficiency ?? 0.75;
  requireNumber("efficiency", efficiency, 0);
  const allToAll = (o.topK * (o.ranks - 1)) / o.ranks;
  const allGather = o.ranks - 1;
  return {
    dispatch: allToAll > efficiency * allGather ? "all-gather" : "all-to-all",
    allToAll,
    allGather,
  };
}

/** Rows [R] that each rank sends in the all-gather, ring or direct: its own to every other rank. */
export function allGatherRows(plan: DispatchPlan): Float64Array {
  const sent = new Float64Array(plan.ranks);
  for (let r = 0; r < plan.ranks; r++) {
    sent[r] = (plan.tokenStarts[r + 1]! - plan.tokenStarts[r]!) * (plan.ranks - 1);
  }
  return sent;
}

/** Rows [R] that each rank sends in the reduce-scatter: its partial sums of all others' tokens. */
export function reduceScatterRows(plan: DispatchPlan): Float64Array {
  const sent = new Float64Array(plan.ranks);
  for (let r = 0; r < plan.ranks; r++) {
    sent[r] = plan.tokens - (plan.tokenStarts[r + 1]! - plan.tokenStarts[r]!);
  }
  return sent;
}

/** `rank`'s expert rows, from all tokens `x` [T, hidden]. */
export function localScatter(plan: DispatchPlan, rank: number, x: Floats, hidden: number): Floats {
  requireLength("x", x, plan.tokens * hidden, `${plan.tokens} tokens x ${hidden}`);
  const { start, end } = rowsOf(plan, rank);
  const out = floatsLike(x, (end - start) * hidden);
  for (let row = start; row < end; row++) {
    const slot = plan.expertSlots[row]!;
    if (slot < 0) continue;
    const from = Math.floor(slot / plan.topK) * hidden;
    const to = (row - start) * hidden;
    for (let c = 0; c < hidden; c++) out[to + c] = x[from + c]!;
  }
  return out;
}

/**
 * `rank`'s share [T, hidden] of every token's weighted sum, from its expert rows `y`; the sum of all
 * ranks' shares (the reduce-scatter) is `combineRows`.
 */
export function localGather(
  plan: DispatchPlan,
  rank: number,
  y: Floats,
  hidden: number,
  weights: Floats,
): Floats {
  const { start, end } = rowsOf(plan, rank);
  requireLength("y", y, (end - start) * hidden, `${end - start} expert rows x ${hidden}`);
  requireLength("weights", weights, plan.expertRows.length, `${plan.tokens} x top-${plan.topK}`);
  const out = floatsLike(y, plan.tokens * hidden);
  for (let row = start; row < end; row++) {
    const slot = plan.expertSlots[row]!;
    if (slot < 0) continue;
    const to = Math.floor(slot / plan.topK) * hidden;
    const from = (row - start) * hidden;
    const w = weights[slot]!;
    for (let c = 0; c < hidden; c++) out[to + c]! += w * y[from + c]!;
  }
  return out;
}

function rowsOf(plan: DispatchPlan, rank: number): { start: number; end: number } {
  requireInteger("rank", rank, 0, plan.ranks - 1);
  const local = plan.experts / plan.ranks;
  return {
    start: plan.expertStarts[rank * local]!,
    end: plan.expertStarts[(rank + 1) * local]!,
  };
}
