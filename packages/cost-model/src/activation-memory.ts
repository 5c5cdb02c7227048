/**
 * What a layer keeps for its backward pass, per rank and microbatch. For GPT form in 16 bits with
 * dropout, plain attention and sequence parallelism this is sbh(34 + 5as/h)/t (arXiv 2205.05198,
 * Table 2), without sequence parallelism sbh(10 + 24/t + 5as/ht).
 */
import type { Bytes } from "@trireme/core";
import { type Model, type Plan, bytesOf } from "@trireme/workload";

/** Bytes that one layer keeps under the plan's recomputation. */
export function layerActivations(m: Model, p: Plan): Bytes {
  const e = bytesOf(p.precision);
  const tokens = (p.microbatch * p.sequence) / p.cp;
  const rows = p.sequenceParallel ? tokens / p.tp : tokens;
  if (p.recompute === "full") return rows * m.hidden * e;
  // Input and second residual; queries, values and context; gate and down products.
  if (p.recompute === "operators") {
    const split =
      (m.heads + m.kvHeads + m.heads) * m.headDim + (m.activation === "swiglu" ? 1 : 2) * m.ffn;
    return e * (2 * rows * m.hidden + (tokens / p.tp) * split);
  }
  return storedByLayer(m, p, p.recompute === "selective");
}

/** Bytes that exist only while a layer is at work: all it would have kept, when it is recomputed. */
export function layerWorkspace(m: Model, p: Plan): Bytes {
  if (p.recompute === "full" || p.recompute === "operators") return storedByLayer(m, p, false);
  if (p.recompute === "selective") return storedByLayer(m, p, false) - storedByLayer(m, p, true);
  return 0;
}

function storedByLayer(m: Model, p: Plan, withoutScores: boolean): Bytes {
  const e = bytesOf(p.precision);
  const tokens = (p.microbatch * p.sequence) / p.cp;
  const rows = p.sequenceParallel ? tokens / p.tp : tokens;
  const mask = p.dropout > 0 ? 1 : 0;
  // Inputs of both norms and of both column-parallel products, and the masks of both branches.
  // Elementary operations keep their 32-bit and scaled copies of the norms' inputs.
  const norms = m.norm === "rmsnorm" && !p.fusedNorm ? 2 * (8 + e) : 0;
  // What a product keeps for its weight gradient is its quantised input.
  const operand = p.matrixPrecision === undefined ? e : 1;
  const replicated = rows * m.hidden * (2 * e + 2 * operand + 2 * mask + norms);
  const qkv = (m.heads + 2 * m.kvHeads) * m.headDim * e;
  const context = m.heads * m.headDim * e;
  const gate = m.activation === "swiglu" ? (p.fusedElementwise ? 2 : 3) : 1;
  const split = (tokens / p.tp) * (qkv + context + (gate * e + operand) * m.ffn);
  const heads = m.heads / p.tp;
  const scores = p.flashAttention
    ? (4 * p.microbatch * heads * p.sequence) / p.cp
    : withoutScores
      ? 0
      : ((p.microbatch * heads * p.sequence ** 2) / p.cp) * (e + (mask > 0 ? mask + e : 0));
  return replicated + split + scores;
}
