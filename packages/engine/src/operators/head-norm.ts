import type { Parameter, Tape, Variable } from "../tape/tape.ts";
import type { AttentionShape } from "./attention.ts";
import { joinColumns, splitColumns } from "./column-parts.ts";
import { type NormOptions, rmsNorm } from "./norm.ts";

/**
 * qkv [rows, (heads + 2·kvHeads)·headDim] with each head of queries and of keys normalised, by gains
 * that all heads share (Qwen 3, 2025).
 */
export function normHeads(
  tape: Tape,
  qkv: Variable,
  { heads, kvHeads, headDim }: Pick<AttentionShape, "heads" | "kvHeads" | "headDim">,
  gains: { readonly query: Parameter; readonly key: Parameter },
  options: NormOptions,
): Variable {
  const widths = [heads, kvHeads, kvHeads].map((n) => n * headDim);
  const [queries, keys, values] = splitColumns(tape, qkv, widths);
  return joinColumns(tape, [
    rmsNorm(tape, queries!, gains.query, options),
    rmsNorm(tape, keys!, gains.key, options),
    values!,
  ]);
}
