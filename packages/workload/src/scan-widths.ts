/**
 * What state-space layers and delta nets are made of: one projection in, a causal convolution over part of it, the scan
 * over heads, a gated norm, one projection out (Mamba-2, arXiv 2405.21060, Fig. 6; Gated DeltaNet, arXiv 2412.06464,
 * Fig. 1).
 */
import type { LayerForm } from "./layer-form.ts";
import type { Model } from "./model.ts";

/** A mixer that scans its tokens in order. */
export type Scan = Exclude<LayerForm["mixer"], "attention" | "none">;

/** Features by place, all ranks together. */
export interface ScanWidths {
  /** Of the projection in: gate, values, keys and queries (B and C), and the numbers of each head. */
  readonly projected: number;
  /** Of these, what the convolution runs over. */
  readonly convolved: number;
  /** Of the scan's result. */
  readonly inner: number;
  /** Tokens that the convolution sees, and whether it has a bias. */
  readonly taps: number;
  readonly convolutionBias: boolean;
  /** Learned numbers of the heads: A, D and the bias of dt; a delta net has no D. */
  readonly perHead: number;
  /** Weights of the norm: of the heads' own channels, or shared by all heads. */
  readonly norm: number;
  readonly normShared: boolean;
}

/** Whether a mixer scans. */
export function isScan(mixer: LayerForm["mixer"]): mixer is Scan {
  return mixer === "mamba" || mixer === "delta-net";
}

/** The widths of a model's scanning layers of one kind. */
export function scanWidths(m: Model, scan: Scan): ScanWidths {
  if (scan === "mamba") {
    const { heads, headDim, stateDim, groups, convolution, convolutionBias } = m.mamba!;
    const inner = heads * headDim;
    const shared = 2 * groups * stateDim;
    return {
      projected: 2 * inner + shared + heads,
      convolved: inner + shared,
      inner,
      taps: convolution,
      convolutionBias,
      perHead: 3 * heads,
      norm: inner,
      normShared: false,
    };
  }
  const { keyHeads, valueHeads, keyDim, valueDim, convolution } = m.deltaNet!;
  const keys = keyHeads * keyDim;
  const inner = valueHeads * valueDim;
  return {
    projected: 2 * keys + 2 * inner + 2 * valueHeads,
    convolved: 2 * keys + inner,
    inner,
    taps: convolution,
    convolutionBias: false,
    perHead: 2 * valueHeads,
    norm: valueDim,
    normShared: true,
  };
}

/** Numbers of a token's recurrence, all heads together: the state's size, B xᵀ and C h or k vᵀ and q S. */
export function stateSize(m: Model, scan: Scan): number {
  if (scan === "mamba") return m.mamba!.heads * m.mamba!.headDim * m.mamba!.stateDim;
  return m.deltaNet!.valueHeads * m.deltaNet!.keyDim * m.deltaNet!.valueDim;
}
