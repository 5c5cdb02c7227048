/** From experts to replicas: which copy of its expert a row goes to. */
import type { Placement } from "./placement.ts";
import { startsOf } from "./dispatch-plan.ts";
import { unknownExpert } from "./routing.ts";
import { requireDivisible, requireInteger } from "./shape.ts";

/** How replicas are chosen. */
export interface AssignOptions {
  readonly placement: Placement;
  readonly layer: number;
  /** [T, k] expert of each slot, −1 for none. */
  readonly expertIds: Int32Array;
  readonly topK: number;
  /**
   * `in-turn` deals an expert's rows out to its replicas one after the other, so that they differ by
   * at most one. `nearest` does so among the replicas on the token's own rank, else on its host,
   * else anywhere.
   */
  readonly policy: "in-turn" | "nearest";
  /** [R] tokens of each rank; default as equal as they divide. */
  readonly tokensPerRank?: ArrayLike<number>;
  /** Default all. */
  readonly ranksPerHost?: number;
}

/** [T, k] replica slot of each slot, to be planned for with `experts: placement.replicas`. */
export function assignReplicas(o: AssignOptions): Int32Array {
  const { placement, layer, expertIds, topK } = o;
  const { experts, replicas, ranks, mostReplicas, replicaCounts, slotsOf } = placement;
  requireInteger("layer", layer, 0, placement.layers - 1);
  requireInteger("topK", topK, 1);
  const ranksPerHost = o.ranksPerHost ?? ranks;
  requireInteger("ranksPerHost", ranksPerHost, 1);
  requireDivisible("ranks", ranks, "ranks per host", ranksPerHost);
  const tokens = expertIds.length / topK;
  requireInteger(`tokens (${expertIds.length} slots of top-${topK})`, tokens, 0);
  const starts = startsOf(tokens, ranks, o.tokensPerRank);
  const each = replicas / ranks;
  const turns = new Int32Array(experts);
  const near = new Int32Array(experts * mostReplicas);
  const nearCounts = new Int32Array(experts);
  const out = new Int32Array(expertIds.length);
  for (let rank = 0; rank < ranks; rank++) {
    for (let e = 0; e < experts; e++) {
      const at = (layer * experts + e) * mostReplicas;
      const all = slotsOf.subarray(at, at + replicaCounts[layer * experts + e]!);
      const host = Math.floor(rank / ranksPerHost);
      let open = o.policy === "nearest" ? all.filter((s) => Math.floor(s / each) === rank) : all;
      if (open.length === 0) {
        open = all.filter((s) => Math.floor(s / each / ranksPerHost) === host);
      }
      if (open.length === 0) open = all;
      near.set(open, e * mostReplicas);
      nearCounts[e] = open.length;
    }
    const last = starts[rank + 1]! * topK;
    for (let slot = starts[rank]! * topK; slot < last; slot++) {
      const e = expertIds[slot]!;
      if (e === -1) {
        out[slot] = -1;
        continue;
      }
      if (e < 0 || e >= experts) throw unknownExpert(slot, e, experts);
      const turn = turns[e]! % nearCounts[e]!;
      out[slot] = near[e * mostReplicas + turn]!;
      turns[e] = turn + 1 === nearCounts[e] ? 0 : turn + 1;
    }
  }
  return out;
}
