import type { Kernels } from "../kernels/kernels.ts";
import type { ContextParallel } from "../layout/parallel.ts";
import type { Range } from "../memory/slice.ts";
import { type Tape, type Variable, gradientOf } from "../tape/tape.ts";
import { contextCore } from "./context-attention.ts";
import { exchangeHeads, exchangeTokens } from "./head-exchange.ts";

/** The shape of a batch of attention: causal, with kvHeads dividing heads (grouped queries). */
export interface AttentionShape {
  readonly batch: number;
  /** The tokens of each sample here, in order. */
  readonly pieces: readonly Range[];
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  /** Base of the rotary angles; undefined where positions are learned. */
  readonly rotaryBase: number | undefined;
  /** Numbers of a head that are turned, its first ones; left out, all. */
  readonly rotaryDim?: number;
  /** Tokens that a query sees, itself included; 0 for all before it. */
  readonly window: number;
}

/** How attention is computed on rows of queries, keys and values that have their positions already. */
export interface AttentionCore {
  /** Fills out [rows, heads·headDim] and the logsumexps [rows·heads]; all pointers. */
  forward(qkv: number, out: number, lse: number): void;
  /** Fills dqkv. */
  backward(qkv: number, out: number, lse: number, dout: number, dqkv: number): void;
}

/** Attention's result, and a way to forget it until a backward asks (selective recomputation). */
export interface Attended {
  readonly y: Variable;
  readonly drop: () => void;
}

/** Tokens of a sample here. */
function tokensOf(pieces: readonly Range[]): number {
  return pieces.reduce((sum, { count }) => sum + count, 0);
}

/**
 * Causal attention of qkv [batch·tokens, (heads + 2·kvHeads)·headDim] to [batch·tokens, heads·headDim],
 * in blocks, without the sequence × sequence matrix (Dao et al., FlashAttention, 2022). Rotary
 * positions (Su et al., 2021) are applied to queries and keys in place.
 */
export function attention(
  tape: Tape,
  qkv: Variable,
  shape: AttentionShape,
  context?: ContextParallel,
): Attended {
  if (context === undefined) return attend(tape, qkv, shape, coreOf(tape, shape));
  if (context.exchange !== "all-to-all") {
    return attend(tape, qkv, shape, contextCore(tape, shape, context));
  }
  // Ulysses (Jacobs et al., 2023): all tokens of some heads instead of some tokens of all.
  const { heads, kvHeads, headDim } = shape;
  const { ranks } = context.group;
  const sections = [heads, kvHeads, kvHeads].map((n) => n * headDim);
  const some = exchangeTokens(tape, qkv, sections, shape.batch, context.group);
  const whole: AttentionShape = {
    ...shape,
    pieces: [{ start: 0, count: tokensOf(shape.pieces) * ranks }],
    heads: heads / ranks,
    kvHeads: kvHeads / ranks,
  };
  const { y, drop } = attend(tape, some, whole, coreOf(tape, whole));
  const all = exchangeHeads(tape, y, [heads * headDim], shape.batch, context.group);
  drop();
  return { y: all, drop: () => {} };
}

function attend(tape: Tape, qkv: Variable, shape: AttentionShape, core: AttentionCore): Attended {
  const { batch, pieces, heads, headDim } = shape;
  const rows = batch * tokensOf(pieces);
  const y = tape.variable([rows, heads * headDim]);
  let lse = tape.allocate([rows * heads]);
  rotate(tape, qkv.value.pointer, shape, 1);
  core.forward(qkv.value.pointer, y.value.pointer, lse.pointer);

  tape.record({
    input: () => {
      const out = tape.valueOf(y).pointer;
      const dy = gradientOf(y).pointer;
      tape.contribute(qkv, (dx) => {
        core.backward(qkv.value.pointer, out, lse.pointer, dy, dx);
        rotate(tape, dx, shape, -1);
      });
    },
    spent: () => [y.value, y.gradient, lse],
  });
  return {
    y,
    // What the products after it need is computed again from queries, keys and values.
    drop: () => {
      if (!tape.records) return;
      tape.free(lse);
      tape.drop(y, () => {
        y.value = tape.allocate(y.value.dims);
        lse = tape.allocate(lse.dims);
        core.forward(qkv.value.pointer, y.value.pointer, lse.pointer);
        return y.value;
      });
    },
  };
}

/** Turns queries and keys to their positions, or back. */
function rotate(tape: Tape, qkv: number, shape: AttentionShape, direction: 1 | -1): void {
  const { heads, kvHeads, headDim, rotaryBase, rotaryDim = headDim } = shape;
  if (rotaryBase === undefined) return;
  // Heads that are turned in part lie apart: one after another.
  const whole = rotaryDim === headDim;
  const turned = heads + kvHeads;
  for (let head = 0; head < (whole ? 1 : turned); head++) {
    const at = qkv + head * headDim * 4;
    turn(tape, at, shape, rotaryBase, whole ? turned : 1, rotaryDim, direction);
  }
}

/** Turns heads of this width that lie side by side in each row. */
function turn(
  { kernels }: Tape,
  x: number,
  { batch, pieces, heads, kvHeads, headDim }: AttentionShape,
  base: number,
  turned: number,
  width: number,
  direction: 1 | -1,
): void {
  const stride = (heads + 2 * kvHeads) * headDim;
  const [only] = pieces;
  if (pieces.length === 1 && only !== undefined) {
    const { count, start } = only;
    kernels.rotary(x, batch, count, turned, stride, width, base, direction, start);
    return;
  }
  let at = x;
  for (let sample = 0; sample < batch; sample++) {
    for (const { start, count } of pieces) {
      kernels.rotary(at, 1, count, turned, stride, width, base, direction, start);
      at += count * stride * 4;
    }
  }
}

function coreOf({ kernels, pool }: Tape, shape: AttentionShape): AttentionCore {
  const { batch, pieces, heads, kvHeads, headDim } = shape;
  const bytes = kernels.attentionWorkspace(batch, heads, kvHeads, tokensOf(pieces), headDim);
  return wholeCore(kernels, shape, () => pool.scratch(bytes));
}

/** Attention where all tokens of each sample are here; `space` gives a workspace. */
export function wholeCore(
  kernels: Kernels,
  shape: AttentionShape,
  space: () => number,
): AttentionCore {
  const { batch, pieces, heads, kvHeads, headDim, window } = shape;
  const sequence = tokensOf(pieces);
  const sizes = [batch, heads, kvHeads, sequence, sequence, headDim] as const;
  const stride = (heads + 2 * kvHeads) * headDim;
  const options = [stride, stride, 0, window] as const;
  const [k, v] = [heads * headDim * 4, (heads + kvHeads) * headDim * 4];
  return {
    forward: (x, y, lse) => {
      kernels.attendForward(x, x + k, x + v, y, lse, ...sizes, ...options, space());
    },
    backward: (x, y, lse, dy, dx) => {
      kernels.fill(dx, 0, batch * sequence * stride);
      const gradients = [dx, dx + k, dx + v] as const;
      kernels.attendBackward(
        x,
        x + k,
        x + v,
        y,
        lse,
        dy,
        ...gradients,
        ...sizes,
        ...options,
        space(),
      );
    },
  };
}
