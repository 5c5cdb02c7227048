/**
 * Dropping: experts, or the experts of a device together (MegaScale-MoE), keep at most `capacity`
 * of the slots that chose them. The dropped slots lose their expert and their weight; the others
 * keep theirs.
 */
import { type Routing, checkRouting } from "./routing.ts";
import { requireDivisible, requireInteger } from "./shape.ts";

/** What is kept. */
export interface DropOptions {
  /** Slots kept per expert, or per device group. */
  readonly capacity: number;
  /** `probability` keeps the largest weights, `position` the first tokens; equal weights keep the first. */
  readonly policy: "probability" | "position";
  /** Groups of consecutive experts that share a capacity; default each expert. */
  readonly deviceGroups?: number;
}

/** A routing after dropping. */
export interface DroppedRouting extends Routing {
  /** Slots that lost their expert. */
  readonly dropped: number;
}

/** Applies a capacity. A capacity of at least the tokens (times k for groups) drops nothing. */
export function dropTokens(routing: Routing, o: DropOptions): DroppedRouting {
  checkRouting(routing);
  const { tokens, experts, topK } = routing;
  const { capacity } = o;
  requireInteger("capacity", capacity, 0);
  const groups = o.deviceGroups ?? experts;
  requireInteger("deviceGroups", groups, 1, experts);
  requireDivisible("experts", experts, "device groups", groups);
  const size = experts / groups;

  const expertIds = routing.expertIds.slice();
  const weights = routing.weights.slice();
  const starts = new Int32Array(groups + 1);
  for (let slot = 0; slot < expertIds.length; slot++) {
    const e = expertIds[slot]!;
    if (e !== -1) starts[Math.floor(e / size) + 1]!++;
  }
  for (let g = 0; g < groups; g++) starts[g + 1]! += starts[g]!;

  const members = new Int32Array(starts[groups]!);
  const cursors = starts.slice(0, groups);
  for (let slot = 0; slot < expertIds.length; slot++) {
    const e = expertIds[slot]!;
    if (e !== -1) members[cursors[Math.floor(e / size)]!++] = slot;
  }

  let dropped = 0;
  for (let g = 0; g < groups; g++) {
    const group = members.subarray(starts[g], starts[g + 1]);
    if (group.length <= capacity) continue;
    if (o.policy === "probability") group.sort((a, b) => weights[b]! - weights[a]! || a - b);
    for (const slot of group.subarray(capacity)) {
      expertIds[slot] = -1;
      weights[slot] = 0;
      dropped++;
    }
  }
  return { tokens, experts, topK, expertIds, weights, dropped };
}
