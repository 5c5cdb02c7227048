/** Operators: the kernels of a training step, with shape, arithmetic and memory traffic. */
import type { Bytes, Flops } from "@trireme/core";

/** Which part of a step an operator belongs to; `recompute` is forward work done again for backward. */
export type Pass = "forward" | "recompute" | "input-gradient" | "weight-gradient" | "update";

export type OperatorKind =
  | "gemm"
  | "attention"
  | "norm"
  | "activation"
  | "add"
  | "embedding"
  | "loss"
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
   * gemm [batch, m, n, k]; attention [batch, heads, kvHeads, sequence, headDim]; norm, activation and
   * add [rows, width]; embedding [tokens, width, vocab]; loss [rows, vocab]; optimizer [parameters].
   */
  readonly shape: readonly number[];
  /** Arithmetic of one execution. */
  readonly flops: Flops;
  /** Memory read and written by one execution, each operand once. */
  readonly bytes: Bytes;
  readonly count: number;
}

/** A collective of one rank, `count` times in its pass; `bytes` is the full buffer, as nccl-tests counts it. */
export interface CollectiveOperator {
  readonly kind: "all-reduce" | "all-gather" | "reduce-scatter";
  /** Gradients and weights travel along "dp", which takes the context-parallel ranks in: they hold the same weights. */
  readonly axis: "tp" | "cp" | "dp";
  readonly bytes: Bytes;
  readonly pass: Pass;
  readonly count: number;
}

/** An operator with its key derived. */
export function operator(o: Omit<Operator, "key">): Operator {
  const pass = o.pass === "recompute" ? "forward" : o.pass;
  return { ...o, key: `${o.kind}/${o.form}/${pass}/${o.shape.join("x")}` };
}
