import type { Tape, Variable } from "../tape.ts";
import { gradientOf } from "../tape.ts";

/** The shape of a batch of attention: causal, with kvHeads dividing heads (grouped queries). */
export interface AttentionShape {
  readonly batch: number;
  readonly sequence: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  /** Base of the rotary angles; undefined where positions are learned. */
  readonly rotaryBase: number | undefined;
}

/**
 * Causal attention of qkv [batch·sequence, (heads + 2·kvHeads)·headDim] to
 * [batch·sequence, heads·headDim], in blocks, without the sequence × sequence matrix (Dao et al.,
 * FlashAttention, 2022). Rotary positions (Su et al., 2021) are applied to queries and keys in place.
 */
export function attention(tape: Tape, qkv: Variable, shape: AttentionShape): Variable {
  const { kernels, pool } = tape;
  const { batch, sequence, heads, kvHeads, headDim, rotaryBase } = shape;
  const sizes = [batch, heads, kvHeads, sequence, headDim] as const;
  const stride = (heads + 2 * kvHeads) * headDim;
  const rotate = (pointer: number, direction: 1 | -1): void => {
    if (rotaryBase === undefined) return;
    const rotated = heads + kvHeads;
    kernels.rotary(pointer, batch, sequence, rotated, stride, headDim, rotaryBase, direction);
  };

  const y = tape.variable([batch * sequence, heads * headDim]);
  const lse = tape.allocate([batch, heads, sequence]).pointer;
  const space = (): number => pool.scratch(kernels.attentionWorkspace(...sizes));
  const [x, ys] = [qkv.value.pointer, y.value.pointer];
  rotate(x, 1);
  kernels.attentionForward(x, ys, lse, ...sizes, space());

  tape.record({
    input: () => {
      const dy = gradientOf(y).pointer;
      tape.contribute(qkv, (dx) => {
        kernels.attentionBackward(x, ys, lse, dy, dx, ...sizes, space());
        rotate(dx, -1);
      });
    },
  });
  return y;
}
