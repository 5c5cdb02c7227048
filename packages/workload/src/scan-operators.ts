/**
 * State-space layers and delta nets on one rank: projection in, causal convolution, scan, gated norm, projection out.
 * Tensor parallelism splits heads and the groups that share B and C; context parallelism exchanges tokens for heads
 * around the convolution and the scan, which need all tokens of theirs (Megatron-LM, mamba_context_parallel.py).
 */
import { deltaRule } from "./delta-rule.ts";
import type { Model } from "./model.ts";
import type { OperatorList } from "./operator-list.ts";
import { type Scan, scanWidths } from "./scan-widths.ts";
import { stateSpaceDual } from "./state-space-dual.ts";

/** Appends a scanning mixer, from behind its norm to in front of the residual sum; `tokens` are the rank's. */
export function scanOperators(m: Model, list: OperatorList, scan: Scan, tokens: number): void {
  const { tp } = list.plan;
  const { projected, convolved, inner, taps } = scanWidths(m, scan);
  list.gemm(tokens, m.hidden, projected / tp, m.bias);
  convolution(list, scan, tokens, convolved / tp, taps);
  if (scan === "mamba") stateSpaceDual(m.mamba!, list);
  else deltaRule(m.deltaNet!, list, tokens);
  const parts = scan === "mamba" ? m.mamba!.groups : m.deltaNet!.valueHeads;
  gatedNorm(list, (tokens * parts) / tp, inner / parts);
  list.gemm(tokens, inner / tp, m.hidden, m.bias, { dropped: m.hidden });
}

/**
 * Depthwise, causal, with its activation. The kernel of Mamba-2 keeps its input alone, and backward computes it again.
 */
function convolution(
  list: OperatorList,
  scan: Scan,
  tokens: number,
  width: number,
  taps: number,
): void {
  const n = tokens * width;
  const flops = (2 * taps + 4) * n;
  const bytes = 2 * list.element * n;
  const again = scan === "mamba" ? 1 : 0;
  list.rowwise(
    "convolution",
    `causal${taps}`,
    [tokens, width],
    { flops, bytes },
    { flops: (2 + again) * flops, bytes: (1.5 + again) * bytes },
  );
}

/** The norm of what a sigmoid-weighted gate has scaled, in one kernel or in two. */
function gatedNorm(list: OperatorList, rows: number, width: number): void {
  const { fusedNorm } = list.plan;
  const n = rows * width;
  const e = list.element;
  const gate = [3 * e * n, 5 * e * n] as const;
  list.rowwise(
    fusedNorm ? "norm" : "activation",
    fusedNorm ? "rmsnorm-gated" : "gate",
    [rows, width],
    { flops: (fusedNorm ? 13 : 6) * n, bytes: gate[0] },
    { flops: (fusedNorm ? 26 : 12) * n, bytes: gate[1] },
  );
  if (!fusedNorm) list.norm("rmsnorm", rows, width);
}
