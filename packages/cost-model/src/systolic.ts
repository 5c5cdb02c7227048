/**
 * Products on systolic arrays: one operand stays in the array, of which a part stands idle where its sides are no
 * multiples of the array's, and the rows of the other stream through eight at a time (Austin et al., How to scale your
 * model, 2025, appendix B of chapter 2).
 */
import type { Flops } from "@trireme/core";

/** Rows that enter an array together. */
const streamed = 8;

/**
 * Arithmetic of `batch` products C[m, n] = A[m, k] B[k, n] on arrays of `side` by `side`, idle parts of them counted.
 */
export function systolicFlops(side: number, batch: number, m: number, n: number, k: number): Flops {
  const padded = (size: number, unit: number): number => unit * Math.ceil(size / unit);
  return 2 * batch * padded(m, streamed) * padded(n, side) * padded(k, side);
}
