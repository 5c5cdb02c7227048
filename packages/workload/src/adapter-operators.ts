/**
 * What adapters add to a layer, as Megatron-LM's frameworks and PEFT compute them: dropout of what enters, two thin
 * products in training precision, the factor alpha / rank (LoRA, arXiv 2106.09685 §4.1), and the sum.
 */
import { adaptedMatrices } from "./adapter.ts";
import type { AdapterTarget, Model } from "./model.ts";
import type { OperatorList } from "./operator-list.ts";

/** Appends the kernels of those adapters of a layer that are beside one product over so many rows. */
export function adapters(
  m: Model,
  list: OperatorList,
  rows: number,
  beside: readonly AdapterTarget[],
): void {
  if (m.adapter === undefined) return;
  const { tp } = list.plan;
  const { rank, dropout } = m.adapter;
  for (const { target, inner, out, split } of adaptedMatrices(m)) {
    if (!beside.includes(target)) continue;
    const own = split === "inner" ? inner / tp : inner;
    const width = split === "out" ? out / tp : out;
    if (dropout > 0) drop(list, rows, own);
    list.gemm(rows, own, rank, false, { quantise: false });
    list.gemm(rows, rank, width, false, { quantise: false });
    add(list, rows, own, width);
  }
}

/** Writes the input with some elements zero, and a mask of a byte each for backward. */
function drop(list: OperatorList, rows: number, width: number): void {
  const n = rows * width;
  const work = { flops: 2 * n, bytes: (2 * list.element + 1) * n };
  list.rowwise("activation", "dropout", [rows, width], work, work);
}

/**
 * Scales the result and adds it to the matrix's; backward scales its gradient, and adds that of the input to the
 * matrix's.
 */
function add(list: OperatorList, rows: number, inner: number, out: number): void {
  const e = list.element;
  const scaled = 2 * e * rows * out;
  list.rowwise(
    "add",
    "low-rank",
    [rows, out, inner],
    { flops: 2 * rows * out, bytes: scaled + 3 * e * rows * out },
    { flops: rows * (out + inner), bytes: scaled + 3 * e * rows * inner },
  );
}
