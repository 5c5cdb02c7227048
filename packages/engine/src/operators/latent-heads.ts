/**
 * The heads of latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1) as plain attention takes
 * them: each key is a part of its own and the rotated key that all heads share, and values are
 * narrower than keys, which zeros make up for. Legend: a head has n columns without position, r that
 * are rotated and v of values; d = n + r.
 */
import type { LatentAttention } from "@trireme/workload";
import type { Range } from "../memory/slice.ts";
import { type Tape, type Variable, gradientOf } from "../tape/tape.ts";
import { matrixDims } from "../memory/tensor.ts";

/** The shape of a batch of latent attention. */
export interface LatentShape extends Pick<LatentAttention, "nopeDim" | "ropeDim" | "valueDim"> {
  readonly batch: number;
  /** The tokens of each sample here, in order. */
  readonly pieces: readonly Range[];
  /** Heads on this rank. */
  readonly heads: number;
  readonly rotaryBase: number;
}

/**
 * Queries [rows, heads·d], keys without position beside values [rows, heads·(n + v)] and the shared
 * rotated key [rows, r], before rotation, to qkv [rows, 3·heads·d].
 */
export function latentHeads(
  tape: Tape,
  queries: Variable,
  keysValues: Variable,
  sharedKey: Variable,
  shape: LatentShape,
): Variable {
  const { kernels, pool } = tape;
  const { heads, nopeDim: n, ropeDim: r, valueDim: v } = shape;
  const [d, wide] = [n + r, n + v];
  const [rows, width] = matrixDims(queries.value);
  const stride = 3 * width;
  const [dk, dv] = [width * 4, 2 * width * 4];
  const y = tape.variable([rows, stride]);

  /** Lends the shared key, or room for its gradient. */
  const lend = (use: (key: number) => void): void => {
    const key = pool.allocate([rows, r]);
    use(key.pointer);
    pool.free(key);
  };
  const x = y.value.pointer;
  kernels.copyRows(queries.value.pointer, width, x, stride, rows, width);
  rotate(tape, x + n * 4, shape, heads, stride, d, 1);
  lend((key) => {
    kernels.copy(sharedKey.value.pointer, key, rows * r);
    rotate(tape, key, shape, 1, r, r, 1);
    for (let head = 0; head < heads; head++) {
      const from = keysValues.value.pointer + head * wide * 4;
      const to = x + head * d * 4;
      kernels.copyRows(from, heads * wide, to + dk, stride, rows, n);
      kernels.copyRows(key, r, to + dk + n * 4, stride, rows, r);
      kernels.copyRows(from + n * 4, heads * wide, to + dv, stride, rows, v);
    }
  });
  if (v < d) {
    const zeros = pool.allocate([rows, d - v]);
    kernels.fill(zeros.pointer, 0, zeros.size);
    for (let head = 0; head < heads; head++) {
      const to = x + dv + (head * d + v) * 4;
      kernels.copyRows(zeros.pointer, d - v, to, stride, rows, d - v);
    }
    pool.free(zeros);
  }

  const [queryDims, keyValueDims] = [queries.value.dims, keysValues.value.dims];
  tape.record({
    input: () => {
      const dy = gradientOf(y).pointer;
      const dqueries = tape.allocate(queryDims);
      kernels.copyRows(dy, stride, dqueries.pointer, width, rows, width);
      rotate(tape, dqueries.pointer + n * 4, shape, heads, width, d, -1);
      tape.give(queries, dqueries);
      const dkeysValues = tape.allocate(keyValueDims);
      const dkey = tape.allocate([rows, r]);
      kernels.fill(dkey.pointer, 0, dkey.size);
      lend((part) => {
        for (let head = 0; head < heads; head++) {
          const from = dy + head * d * 4;
          const to = dkeysValues.pointer + head * wide * 4;
          kernels.copyRows(from + dk, stride, to, heads * wide, rows, n);
          kernels.copyRows(from + dv, stride, to + n * 4, heads * wide, rows, v);
          kernels.copyRows(from + dk + n * 4, stride, part, r, rows, r);
          kernels.accumulate(part, dkey.pointer, dkey.size);
        }
      });
      rotate(tape, dkey.pointer, shape, 1, r, r, -1);
      tape.give(keysValues, dkeysValues);
      tape.give(sharedKey, dkey);
    },
    spent: () => [y.value, y.gradient],
  });
  return y;
}

/** Attention's result [rows, heads·d] without the zeros: [rows, heads·v]; and a way to forget it. */
export function latentValues(
  tape: Tape,
  x: Variable,
  { heads, nopeDim, ropeDim, valueDim: v }: LatentShape,
): { readonly y: Variable; readonly drop: () => void } {
  const { kernels } = tape;
  const d = nopeDim + ropeDim;
  if (v === d) return { y: x, drop: () => {} };
  const { dims } = x.value;
  const [rows] = matrixDims(x.value);
  const copyHeads = (from: number, width: number, to: number, room: number): void => {
    for (let head = 0; head < heads; head++) {
      const [source, target] = [from + head * width * 4, to + head * room * 4];
      kernels.copyRows(source, heads * width, target, heads * room, rows, v);
    }
  };
  const y = tape.variable([rows, heads * v]);
  copyHeads(x.value.pointer, d, y.value.pointer, v);
  tape.record({
    input: () => {
      // A weight half that reads it comes when attention's result is gone.
      if ((y.readers ?? 0) > 0) tape.valueOf(y);
      const dx = tape.allocate(dims);
      kernels.fill(dx.pointer, 0, dx.size);
      copyHeads(gradientOf(y).pointer, v, dx.pointer, d);
      tape.give(x, dx);
    },
    spent: () => [y.value, y.gradient],
  });
  const restore = (): Variable["value"] => {
    const value = tape.allocate([rows, heads * v]);
    copyHeads(tape.valueOf(x).pointer, d, value.pointer, v);
    return value;
  };
  return { y, drop: () => tape.drop(y, restore) };
}

/** Turns the rotated part of heads `headStride` apart, at `x`, to their positions, or back. */
function rotate(
  { kernels }: Tape,
  x: number,
  { batch, pieces, ropeDim, rotaryBase }: LatentShape,
  heads: number,
  stride: number,
  headStride: number,
  direction: 1 | -1,
): void {
  let at = x;
  for (let sample = 0; sample < batch; sample++) {
    for (const { start, count } of pieces) {
      const sizes = [1, count, heads, stride, headStride, ropeDim] as const;
      kernels.rotaryPairs(at, ...sizes, rotaryBase, direction, start);
      at += count * stride * 4;
    }
  }
}
