/** Arithmetic of scans: as the recurrence that they are, or as the products that chunks make of it. */
import type { Flops } from "@trireme/core";
import type { Model } from "./model.ts";
import { type Scan, stateSize } from "./scan-widths.ts";

/** Of a number of the state and token: decay, product and sum, and the product with C, as Megatron-LM counts them. */
const recurrence: Readonly<Record<Scan, number>> = { mamba: 7, "delta-net": 8 };

/**
 * Forward FLOPs of one layer's scan for a token of a sequence: of the recurrence, or of the products of its chunks
 * (arXiv 2405.21060, §6: scores, scores times values, states, states times queries; arXiv 2412.06464, §3.3), pairs
 * behind the diagonal left out.
 */
export function scanFlops(m: Model, scan: Scan, sequence: number, chunked: boolean): Flops {
  const state = stateSize(m, scan);
  if (!chunked) return recurrence[scan] * state;
  if (scan === "mamba") {
    const { heads, headDim, groups, stateDim, chunk } = m.mamba!;
    const pairs = (Math.min(chunk, sequence) + 1) / 2;
    return 2 * pairs * (groups * stateDim + heads * headDim) + 4 * state;
  }
  const { valueHeads, keyDim, valueDim, chunk } = m.deltaNet!;
  const pairs = (Math.min(chunk, sequence) + 1) / 2;
  // Keys with keys, queries with keys; the inverse times keys and values, scores times values; the state three times.
  return 2 * pairs * valueHeads * (3 * keyDim + 2 * valueDim) + 6 * state;
}
