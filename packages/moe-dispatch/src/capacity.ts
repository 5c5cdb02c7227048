/** How many tokens an expert takes at most. */
import { TriremeError } from "@trireme/core";
import { requireInteger, requireLength, requireNumber } from "./shape.ts";

/** Capacity of one expert. */
export interface CapacityOptions {
  /** Tokens routed, padding excluded. */
  readonly tokens: number;
  readonly topK: number;
  readonly experts: number;
  /** Capacity over the mean load. */
  readonly factor: number;
  /** Least capacity; default 0. */
  readonly minimum?: number;
}

/** ⌈T·k/E·factor⌉, at least `minimum` (GShard; Megatron-LM `get_capacity`). */
export function expertCapacity(o: CapacityOptions): number {
  requireInteger("tokens", o.tokens, 0);
  requireInteger("topK", o.topK, 0);
  requireInteger("experts", o.experts, 1);
  requireNumber("factor", o.factor, 0);
  const minimum = o.minimum ?? 0;
  requireInteger("minimum", minimum, 0);
  const exact = ((o.tokens * o.topK) / o.experts) * o.factor;
  // Rounding of the product (50·1.1 = 55.00000000000001) must not add a place.
  return Math.max(minimum, Math.ceil(exact * (1 - 2 ** -48)));
}

/**
 * Tutel's meaning of the factor's sign: above 0 as `expertCapacity`; 0 takes what the busiest
 * expert needs, so that nothing is dropped; below 0 the same, but at most the capacity of |factor|.
 *
 * @param counts [E] tokens per expert, over all ranks: every rank must come to the same capacity.
 */
export function adaptiveCapacity(counts: ArrayLike<number>, o: CapacityOptions): number {
  if (!Number.isFinite(o.factor)) {
    throw new TriremeError("MOE_RANGE", `factor is ${o.factor}; it must be finite, such as 1.25`);
  }
  const fixed = expertCapacity({ ...o, factor: Math.abs(o.factor) });
  if (o.factor > 0) return fixed;
  requireLength("counts", counts, o.experts, `${o.experts} experts`);
  let needed = o.minimum ?? 0;
  for (let e = 0; e < counts.length; e++) {
    requireInteger(`count of expert ${e}`, counts[e]!, 0);
    needed = Math.max(needed, counts[e]!);
  }
  return o.factor === 0 ? needed : Math.min(needed, fixed);
}
