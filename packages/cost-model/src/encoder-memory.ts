/**
 * What encoders keep for their backward pass: layers of GPT form with flash attention; a frozen one keeps its output
 * only.
 */
import type { Bytes } from "@trireme/core";
import { type Encoder, type Model, type Plan, bytesOf, isGated } from "@trireme/workload";

/** Bytes of one microbatch on one rank, all encoders; none where adapters alone are trained, which backward ends at. */
export function encoderActivations(m: Model, p: Plan): Bytes {
  if (m.adapter !== undefined) return 0;
  return m.encoders.reduce((sum, e) => sum + (e.frozen ? output(p, e) : trained(p, e)), 0);
}

function output(p: Plan, e: Encoder): Bytes {
  return ((p.microbatch * e.tokens) / p.cp) * e.hidden * bytesOf(p.precision);
}

function trained(p: Plan, e: Encoder): Bytes {
  const element = bytesOf(p.precision);
  const tokens = (p.microbatch * e.tokens) / p.cp;
  const rows = p.sequenceParallel ? tokens / p.tp : tokens;
  if (p.recompute === "full") return (e.layers + 1) * rows * e.hidden * element;
  const inner = (isGated(e.activation) ? 3 : 2) * e.ffn;
  const layer = rows * 4 * e.hidden + (tokens / p.tp) * (4 * e.hidden + inner);
  return element * e.layers * layer + output(p, e);
}
