/** Operators: the kernels of a training step, with shape, arithmetic and memory traffic. */
import type { Bytes, Flops } from "@trireme/core";

/** Which part of a step an operator belongs to; `recompute` is forward work done again for backward. */
export type Pass = "forward" | "recompute" | "input-gradient" | "weight-gradient" | "update";

export type OperatorKind =
  | "gemm"
  | "grouped-gemm"
  | "attention"
  | "norm"
  | "activation"
  | "add"
  | "embedding"
  | "loss"
  | "convolution"
  | "scan"
  | "routing"
  | "permutation"
  | "optimizer";

/** One kernel of one rank, run `count` times in its pass of one microbatch (or, "update", of one step). */
export interface Operator {
  /** Equal keys ⇔ equal kind, form and shape (a recomputation has its forward's key): what timings are stored under. */
  readonly key: string;
  readonly kind: OperatorKind;
  readonly pass: Pass;
  /** What the kernel computes within its kind: "gelu", "rmsnorm", "flash", "bf16", … */
  readonly form: string;
  /**
   * gemm [batch, m, n, k]; grouped-gemm [groups, m of all groups together, n, k]; attention [batch, heads,
   * kvHeads, sequence, headDim]; norm, activation, add, convolution and permutation [rows, width] (the bias of experts
   * [rows, width, groups]); scan [batch, m, n, k] of the product that one of its kernels is, k 0 where it is none, over
   * the whole sequence where chunks follow each other; embedding [tokens, width, vocab]; loss [rows, vocab]; routing
   * [tokens, experts, active]; optimizer [parameters].
   */
  readonly shape: readonly number[];
  /** Arithmetic of one execution. */
  readonly flops: Flops;
  /** Memory read and written by one execution, each operand once. */
  readonly bytes: Bytes;
  readonly count: number;
}

/**
 * A collective of one rank, `count` times in its pass. `bytes` is the full buffer, as nccl-tests counts
 * it: what all ranks gather together, or what one rank holds before an all-reduce, a reduce-scatter or an
 * all-to-all.
 */
export interface CollectiveOperator {
  readonly kind: "all-reduce" | "all-gather" | "reduce-scatter" | "all-to-all";
  /**
   * Dense gradients and weights travel along "dp", which takes the context-parallel ranks in, since they
   * hold the same weights; routed experts' along "edp". Tokens travel to experts along "ep", and inside
   * an expert that is split along "etp".
   */
  readonly axis: "tp" | "cp" | "dp" | "ep" | "etp" | "edp";
  readonly bytes: Bytes;
  readonly pass: Pass;
  readonly count: number;
}

/** An operator with its key derived. */
export function operator(
  kind: OperatorKind,
  form: string,
  pass: Pass,
  shape: readonly number[],
  flops: Flops,
  bytes: Bytes,
  count: number,
): Operator {
  let key = `${kind}/${form}/${pass === "recompute" ? "forward" : pass}/${shape[0]!}`;
  // Added up piece by piece, the text is put together when it is first looked at.
  for (let i = 1; i < shape.length; i++) key = key + "x" + shape[i]!;
  return { key, kind, pass, form, shape, flops, bytes, count };
}
