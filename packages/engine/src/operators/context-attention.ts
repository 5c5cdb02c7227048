/**
 * Attention where ranks share out the tokens of each sample in zig-zag order: rank r of n has chunks
 * r and 2n − 1 − r. Each chunk of queries attends to the chunks of keys that are not behind it, one
 * after another, and the results are merged by their logsumexps.
 */
import type { ContextParallel } from "../layout/parallel.ts";
import type { Tape } from "../tape/tape.ts";
import type { AttentionCore, AttentionShape } from "./attention.ts";
import { gatheredExchange, ringExchange } from "./key-exchange.ts";

/** A chunk of queries here and one of keys of some rank that they see. */
interface Pair {
  readonly query: 0 | 1;
  readonly key: 0 | 1;
  /** Position of the first query after that of the first key. */
  readonly shift: number;
}

export function contextCore(
  tape: Tape,
  shape: AttentionShape,
  { group, exchange }: ContextParallel,
): AttentionCore {
  const { kernels, pool } = tape;
  const { batch, pieces, heads, kvHeads, headDim, window } = shape;
  const half = pieces[0]!.count;
  const [width, keyWidth] = [heads * headDim, 2 * kvHeads * headDim];
  const stride = width + keyWidth;
  const values = kvHeads * headDim * 4;
  const keys = exchange === "ring" ? ringExchange(tape, group) : gatheredExchange(tape, group);
  const space = (): number =>
    pool.scratch(kernels.attentionWorkspace(1, heads, kvHeads, half, headDim));
  const sizes = [1, heads, kvHeads, half, half, headDim, stride, keyWidth] as const;

  const chunk = (rank: number, place: 0 | 1): number =>
    place === 0 ? rank : 2 * group.ranks - 1 - rank;
  const pairs = (of: number): Pair[] =>
    ([0, 1] as const).flatMap((query) =>
      ([0, 1] as const).flatMap((key) => {
        const shift = (chunk(group.rank, query) - chunk(of, key)) * half;
        const outside = window > 0 && shift - window >= half - 1;
        return shift < 0 || outside ? [] : [{ query, key, shift }];
      }),
    );
  const each = (
    of: number,
    visit: (pair: Pair, row: number, keyRow: number, lse: number) => void,
  ) => {
    for (let sample = 0; sample < batch; sample++) {
      for (const pair of pairs(of)) {
        const row = (2 * sample + pair.query) * half;
        visit(pair, row, (2 * sample + pair.key) * half, row * heads);
      }
    }
  };
  const packed = (qkv: number): ReturnType<typeof pool.allocate> => {
    const own = pool.allocate([2 * batch * half, keyWidth]);
    kernels.copyRows(qkv + width * 4, stride, own.pointer, keyWidth, 2 * batch * half, keyWidth);
    return own;
  };

  return {
    forward: (qkv, out, lse) => {
      const own = packed(qkv);
      const [part, partLse] = [pool.allocate([half, width]), pool.allocate([half * heads])];
      const begun = new Set<number>();
      keys.forward(own, (of, theirs) => {
        each(of, ({ shift }, row, keyRow, lseAt) => {
          const k = theirs + keyRow * keyWidth * 4;
          const q = qkv + row * stride * 4;
          const [y, sums] = [out + row * width * 4, lse + lseAt * 4];
          const first = !begun.has(row);
          const into = first ? ([y, sums] as const) : ([part.pointer, partLse.pointer] as const);
          kernels.attendForward(q, k, k + values, ...into, ...sizes, shift, window, space());
          if (!first) kernels.attentionMerge(...into, y, sums, heads, half, headDim);
          begun.add(row);
        });
      });
      for (const used of [own, part, partLse]) pool.free(used);
    },
    backward: (qkv, out, lse, dout, dqkv) => {
      const own = packed(qkv);
      const sum = pool.allocate(own.dims);
      kernels.fill(dqkv, 0, 2 * batch * half * stride);
      keys.backward(own, sum, (of, theirs, gradient) => {
        each(of, ({ shift }, row, keyRow, lseAt) => {
          const [k, dk] = [theirs + keyRow * keyWidth * 4, gradient + keyRow * keyWidth * 4];
          const [q, dq] = [qkv + row * stride * 4, dqkv + row * stride * 4];
          const [y, dy] = [out + row * width * 4, dout + row * width * 4];
          const gradients = [dy, dq, dk, dk + values] as const;
          const operands = [q, k, k + values, y, lse + lseAt * 4, ...gradients] as const;
          kernels.attendBackward(...operands, ...sizes, shift, window, space());
        });
      });
      const rows = 2 * batch * half;
      kernels.copyRows(sum.pointer, keyWidth, dqkv + width * 4, stride, rows, keyWidth);
      pool.free(own);
      pool.free(sum);
    },
  };
}
