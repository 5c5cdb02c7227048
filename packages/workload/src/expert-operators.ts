/**
 * The kernels of a mixture of experts on one rank, evenly loaded: router, choice, permutation by
 * expert, the two grouped products and the activation between them, and the weighted sum back; a
 * shared expert is a dense block beside it.
 */
import type { Experts, Model } from "./model.ts";
import { frozen } from "./adapter.ts";
import { fc1Width } from "./parameters.ts";
import type { OperatorList } from "./operator-list.ts";
import type { Plan } from "./plan.ts";
import { bytesOf } from "./precision.ts";

/** Rows of routed tokens on one rank in one microbatch. */
export interface ExpertRows {
  /** Rows that travel: those that leave for experts, or one for each rank that a token has experts on. */
  readonly exchanged: number;
  /** Rows that leave it for experts: its tokens times `active`, or up to the capacity. */
  readonly sent: number;
  /** Rows that its experts compute, padding included. */
  readonly computed: number;
  /** Routed experts that it holds, or a part of each. */
  readonly held: number;
}

/** Rows of routed tokens under even load. */
export function expertRows(e: Experts, p: Plan): ExpertRows {
  const tokens = rankTokens(p);
  const even = tokens * e.active;
  // Capacity pads every expert to the same rows, and drops what is beyond.
  const filled = p.expertCapacity === undefined ? even : even * p.expertCapacity;
  // Under even load a token has an expert on a given rank with probability 1 − (1 − 1/ep)^active.
  const ranks = p.ep * (1 - (1 - 1 / p.ep) ** e.active);
  const exchanged = p.dispatch === "unique" ? (filled * ranks) / e.active : filled;
  return { exchanged, sent: filled, computed: filled * p.etp, held: e.count / p.ep };
}

/** Tokens that one rank routes: sequence parallelism leaves each to one rank. */
export function rankTokens(p: Plan): number {
  return (p.microbatch * p.sequence) / (p.cp * (p.sequenceParallel ? p.tp : 1));
}

/** Appends the block's kernels. `dense` appends the shared expert's. */
export function expertOperators(
  m: Model,
  list: OperatorList,
  dense: (rows: number, ffn: number) => void,
): void {
  const e = m.experts!;
  const p = list.plan;
  const tokens = rankTokens(p);
  const rows = expertRows(e, p);
  list.gemm(tokens, m.hidden, e.count, e.routerBias, {
    quantise: false,
    dropped: e.count,
    frozen: m.adapter !== undefined,
  });
  route(list, tokens, e);
  // Copies are made on the token's rank and sorted by expert where they arrive; a token that travels once is copied
  // where it arrives, straight to its experts' places (MoEFlexTokenDispatcher of Megatron-LM).
  const sorted = p.ep > 1 && rows.held > 1 && p.dispatch !== "unique";
  permutation(list, "scatter", rows.sent, m.hidden);
  if (sorted) permutation(list, "sort", rows.computed, m.hidden);
  // Quantised operands are padded to the kernels' multiples, expert by expert, and cut again.
  const padded = p.matrixPrecision !== undefined && !p.groupedKernel;
  if (padded) permutation(list, "pad", rows.computed, m.hidden);
  const width = e.ffn / p.etp;
  list.groupedGemm(rows.held, rows.computed, m.hidden, fc1Width(m, width), m.bias, frozen(m));
  list.activation(m.activation, rows.computed, width, m.activationClamp > 0);
  list.groupedGemm(rows.held, rows.computed, width, m.hidden, m.bias, frozen(m));
  if (m.bias) weightedBias(list, rows.held, rows.computed, m.hidden);
  if (padded) permutation(list, "pad", rows.computed, m.hidden);
  if (sorted) permutation(list, "sort", rows.computed, m.hidden);
  permutation(list, "combine", rows.sent, m.hidden);
  if (e.sharedFfn === 0) return;
  dense((p.microbatch * p.sequence) / p.cp, e.sharedFfn / p.tp);
  if (e.sharedGate)
    list.gemm(tokens, m.hidden, 1, false, { quantise: false, frozen: m.adapter !== undefined });
  list.add(tokens, m.hidden);
}

/** Scores and the choice of the largest, in 32 bits. */
function route(list: OperatorList, tokens: number, e: Experts): void {
  const n = tokens * e.count;
  list.rowwise(
    "routing",
    "top-k",
    [tokens, e.count, e.active],
    { flops: 6 * n, bytes: 12 * n },
    { flops: 4 * n, bytes: 12 * n },
  );
}

/**
 * The second product's bias joins after the router's weights, so that each expert's is multiplied by its rows' weights
 * and added to them by elementary operations in 32 bits, the results put side by side and cast back (Megatron-LM,
 * experts.py; AutoModel's likewise). Backward takes its gradient once for the rows and sums it twice, for bias and
 * weights.
 */
function weightedBias(list: OperatorList, groups: number, rows: number, width: number): void {
  const n = rows * width;
  const e = list.element;
  const cast = e === 4 ? 0 : 4 + e;
  list.rowwise(
    "add",
    "expert-bias",
    [rows, width, groups],
    { flops: 2 * n, bytes: (20 + e + cast) * n },
    { flops: 4 * n, bytes: (24 + 2 * e + 2 * cast) * n },
  );
}

/** Rows copied to other places; combining also multiplies each by its weight and sums a token's. */
function permutation(
  list: OperatorList,
  form: "scatter" | "sort" | "pad" | "combine",
  rows: number,
  width: number,
): void {
  const n = rows * width;
  const bytes = 2 * bytesOf(list.plan.precision) * n;
  const flops = form === "combine" ? 2 * n : 0;
  list.rowwise(
    "permutation",
    form,
    [rows, width],
    { flops, bytes },
    { flops: form === "sort" || form === "pad" ? 0 : 2 * n, bytes },
  );
}
