/** What the adapters of a layer keep for their weight gradients; the frozen matrices beside them keep nothing. */
import type { Bytes } from "@trireme/core";
import {
  type AdaptedMatrix,
  type AdapterTarget,
  type Model,
  type Plan,
  adaptedMatrices,
  bytesOf,
} from "@trireme/workload";

/** What matrices read, where several read the same; the output projection reads what attention keeps. */
const read: Readonly<Partial<Record<AdapterTarget, "attention" | "feed-forward" | "kept">>> = {
  query: "attention",
  key: "attention",
  value: "attention",
  qkv: "attention",
  "query-down": "attention",
  "key-value-down": "attention",
  output: "kept",
  gate: "feed-forward",
  up: "feed-forward",
  "gate-up": "feed-forward",
};

/**
 * Bytes of one microbatch on a rank: inputs, whole where tensor-parallel ranks gathered them, once for all that read the
 * same, or, where each adapter drops elements, a copy with a mask for each; and what is between the two products.
 */
export function adapterActivations(m: Model, p: Plan): Bytes {
  if (m.adapter === undefined) return 0;
  const { dropout } = m.adapter;
  const e = bytesOf(p.precision);
  const kept = new Set<string>(["kept"]);
  let bytes = betweenProducts(m, p);
  for (const matrix of adaptedMatrices(m)) {
    const { target, inner, split } = matrix;
    const input = (rowsOf(matrix, p) * inner) / (split === "inner" ? p.tp : 1);
    const from = read[target] ?? target;
    if (dropout > 0) bytes += input * (e + 1);
    else if (!kept.has(from)) bytes += input * e;
    kept.add(from);
  }
  return bytes;
}

/** Of these, the results of the first products, as wide as the adapter's rank. */
export function betweenProducts(m: Model, p: Plan): Bytes {
  const width = (m.adapter?.rank ?? 0) * bytesOf(p.precision);
  return adaptedMatrices(m).reduce((sum, matrix) => sum + width * rowsOf(matrix, p), 0);
}

/** Latents' first products see the rank's part of the tokens only. */
function rowsOf({ split }: AdaptedMatrix, p: Plan): number {
  const tokens = (p.microbatch * p.sequence) / p.cp;
  return split === "none" && p.sequenceParallel ? tokens / p.tp : tokens;
}
