/** Bytes by a plan's precisions, and what carries its gradients. */
import type { Bytes } from "@trireme/core";
import type { Plan } from "./plan.ts";

/** Bytes of one element in a precision. */
export function bytesOf(precision: Plan["precision"]): Bytes {
  return precision === "fp32" ? 4 : 2;
}

/** Bytes of one gradient between replicas. */
export function reducedBytes(p: Plan): Bytes {
  return bytesOf(p.reductionPrecision ?? p.gradientPrecision);
}

/** What sums the gradients of replicas. */
export function gradientCollective(p: Plan): "all-reduce" | "reduce-scatter" {
  return p.zero === 0 ? "all-reduce" : (p.gradientExchange ?? "reduce-scatter");
}
