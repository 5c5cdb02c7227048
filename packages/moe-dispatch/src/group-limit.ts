/**
 * Group-limited routing (DeepSeek-V2 and V3; Megatron-LM's `group_limited_topk`): experts lie in
 * equal groups, the groups with the best score are kept, and only their experts may be chosen. With
 * a group per host this is node-limited routing: a token reaches at most `keep` hosts.
 */
import { TriremeError } from "@trireme/core";
import { requireDivisible, requireInteger } from "./shape.ts";
import { selectTopK } from "./top-k.ts";

/** Limits each token to the experts of a few groups. */
export interface GroupLimit {
  /** Groups of equal size that the experts lie in, in order. */
  readonly groups: number;
  /** Groups kept for each token. */
  readonly keep: number;
  /** Best experts of a group whose scores add up to the group's; Megatron's ⌊topK / keep⌋ unless given (DeepSeek-V3: 2). */
  readonly best?: number;
}

/** Throws unless `limit` leaves `topK` experts to choose from; gives the experts scored per group. */
export function checkGroupLimit(limit: GroupLimit, experts: number, topK: number): number {
  requireInteger("groups", limit.groups, 1);
  requireInteger("keep", limit.keep, 1, limit.groups);
  requireDivisible("experts", experts, "groups", limit.groups);
  const size = experts / limit.groups;
  if (limit.keep * size < topK) {
    throw new TriremeError(
      "MOE_GROUPS",
      `keep(${limit.keep}) x ${size} experts per group = ${limit.keep * size}, too few for top-${topK}; keep at least ${Math.ceil(topK / size)}`,
    );
  }
  const best = limit.best ?? Math.min(size, Math.max(1, Math.floor(topK / limit.keep)));
  requireInteger("best", best, 1, size);
  return best;
}

/**
 * Masks, in place, the scores of the groups that are not kept, with −∞: a mask of 0 would win over
 * negative scores (DeepSeek-V3 issue 741).
 */
export function createGroupMask(
  experts: number,
  limit: GroupLimit,
  best: number,
): (scores: Float64Array) => void {
  const { groups, keep } = limit;
  const size = experts / groups;
  const totals = new Float64Array(groups);
  const members = new Int32Array(best);
  const kept = new Float64Array(Math.max(best, keep));
  const chosen = new Int32Array(keep);
  return (scores) => {
    for (let g = 0; g < groups; g++) {
      const found = selectTopK(scores, g * size, size, best, members, 0, kept);
      let total = found === 0 ? -Infinity : 0;
      for (let i = 0; i < found; i++) total += kept[i]!;
      totals[g] = total;
    }
    selectTopK(totals, 0, groups, keep, chosen, 0, kept);
    for (let g = 0; g < groups; g++) {
      if (!chosen.includes(g)) scores.fill(-Infinity, g * size, (g + 1) * size);
    }
  };
}
