/**
 * What state-space layers and delta nets keep for backward, by the token, all ranks together. The kernel of Mamba-2
 * (mamba_split_conv1d_scan_combined) keeps its input, the projection in, and its result; backward computes convolution,
 * scores and states again. A delta net keeps what is behind the convolution too, and the triangle of each chunk.
 */
import type { Bytes } from "@trireme/core";
import { type Model, type Plan, type Scan, scanWidths, stateSize } from "@trireme/workload";

/** Bytes: projection in, what the norm and its gate read, and the input of the projection out. */
export function storedByScan(m: Model, scan: Scan, element: Bytes, operand: Bytes): Bytes {
  const { projected, convolved, inner } = scanWidths(m, scan);
  const kept = (projected + inner) * element + inner * operand;
  // Mamba-2 keeps its result before and behind the gate.
  if (scan === "mamba") return kept + inner * element;
  const { valueHeads, keyDim, valueDim, chunk } = m.deltaNet!;
  // Behind the convolution, normalised and repeated queries and keys; a row of the triangle, a gate and a rate in 32
  // bits.
  const repeated = 2 * valueHeads * keyDim + valueHeads * valueDim;
  return kept + (convolved + repeated + valueHeads * chunk) * element + 8 * valueHeads;
}

/**
 * Elements that remain where norms and what is elementwise are computed again: the projection, and the scan's result.
 */
export function rematerialisedScan(m: Model, scan: Scan): number {
  const { projected, inner } = scanWidths(m, scan);
  return projected + inner;
}

/**
 * Elements on a rank while a scan is at work backward: gradients of its projection, and the states of all chunks in 32
 * bits with theirs.
 */
export function scanGradients(m: Model, p: Plan, scan: Scan): number {
  const tokens = (p.microbatch * p.sequence) / p.cp / p.tp;
  const { projected } = scanWidths(m, scan);
  const chunk = scan === "mamba" ? m.mamba!.chunk : m.deltaNet!.chunk;
  return tokens * (projected + (4 * stateSize(m, scan)) / Math.min(chunk, p.sequence));
}
