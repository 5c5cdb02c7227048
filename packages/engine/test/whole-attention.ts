import type { AttentionShape } from "../src/operators/attention.ts";

/** Attention in which all tokens of each sample are there and have their positions already. */
export function whole(
  batch: number,
  heads: number,
  kvHeads: number,
  sequence: number,
  headDim: number,
): AttentionShape {
  const pieces = [{ start: 0, count: sequence }];
  return { batch, pieces, heads, kvHeads, headDim, rotaryBase: undefined, window: 0 };
}
