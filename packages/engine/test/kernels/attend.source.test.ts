import fc from "fast-check";
import { expect, test } from "vitest";
import { Arena, dot, expectClose } from "./arena.ts";

interface Shape {
  readonly heads: number;
  readonly kvHeads: number;
  readonly queries: number;
  readonly keys: number;
  readonly headDim: number;
  readonly shift: number;
  readonly window: number;
}

const sees = (s: Shape, i: number, j: number): boolean =>
  j <= i + s.shift && (s.window === 0 || j > i + s.shift - s.window);

interface Operands {
  readonly q: ArrayLike<number>;
  readonly k: ArrayLike<number>;
  readonly v: ArrayLike<number>;
  readonly dout: ArrayLike<number>;
}

/** Attention and its gradients by the textbook formula, one score at a time, in float64. */
function reference(s: Shape, { q, k, v, dout }: Operands) {
  const { heads, kvHeads, queries, keys, headDim } = s;
  const out = new Float64Array(q.length);
  const lse = new Float64Array(heads * queries).fill(-Infinity);
  const [dq, dk, dv] = [q, k, v].map(({ length }) => new Float64Array(length)) as [
    Float64Array,
    Float64Array,
    Float64Array,
  ];
  const root = Math.sqrt(headDim);
  const row = (x: ArrayLike<number>, at: number): number[] =>
    Array.from({ length: headDim }, (_, d) => x[at + d]!);
  for (let head = 0; head < heads; head++) {
    const kv = Math.floor(head / (heads / kvHeads));
    for (let i = 0; i < queries; i++) {
      const at = (i * heads + head) * headDim;
      const places = Array.from({ length: keys }, (_, j) => j)
        .filter((j) => sees(s, i, j))
        .map((j) => (j * kvHeads + kv) * headDim);
      if (places.length === 0) continue;
      const scores = places.map((place) => dot(row(q, at), row(k, place)) / root);
      const top = Math.max(...scores);
      const total = top + Math.log(scores.reduce((sum, x) => sum + Math.exp(x - top), 0));
      lse[head * queries + i] = total;
      const p = scores.map((score) => Math.exp(score - total));
      places.forEach((place, n) => {
        for (let d = 0; d < headDim; d++) out[at + d]! += p[n]! * v[place + d]!;
      });
      const g = row(dout, at);
      const delta = dot(g, row(out, at));
      places.forEach((place, n) => {
        const slope = (p[n]! * (dot(g, row(v, place)) - delta)) / root;
        for (let d = 0; d < headDim; d++) {
          dq[at + d]! += slope * k[place + d]!;
          dk[place + d]! += slope * q[at + d]!;
          dv[place + d]! += p[n]! * g[d]!;
        }
      });
    }
  }
  return { out, lse, dq, dk, dv };
}

function run(s: Shape, seed: number) {
  const { heads, kvHeads, queries, keys, headDim, shift, window } = s;
  const arena = new Arena({ seed });
  const { kernels } = arena;
  const [width, kvWidth] = [heads * headDim, kvHeads * headDim];
  const q = arena.normal(queries * width);
  const [k, v] = [arena.normal(keys * kvWidth), arena.normal(keys * kvWidth)];
  const [out, dout] = [arena.unset(queries * width), arena.normal(queries * width)];
  const lse = arena.unset(heads * queries);
  const grads = [q, k, v].map(({ values }) => arena.unset(values.length));
  const [dq, dk, dv] = grads as [typeof q, typeof q, typeof q];
  for (const { values } of grads) values.fill(0);
  const sizes = [1, heads, kvHeads, queries, keys, headDim, width, kvWidth, shift, window] as const;
  const space = arena.workspace(kernels.attentionWorkspace(1, heads, kvHeads, keys, headDim));
  const operands = [q.pointer, k.pointer, v.pointer, out.pointer, lse.pointer] as const;
  kernels.attendForward(...operands, ...sizes, space);
  const gradients = [dout.pointer, dq.pointer, dk.pointer, dv.pointer] as const;
  kernels.attendBackward(...operands, ...gradients, ...sizes, space);
  arena.checkGuards();
  return { arena, q, k, v, out, lse, dout, dq, dk, dv };
}

// float32 scores near 3 carry 2e-7, exp passes it on; sums over keys and queries add a few times that.
const tolerance = 4e-6;

function check(s: Shape, seed = 1): void {
  const { q, k, v, out, lse, dout, dq, dk, dv } = run(s, seed);
  const operands = { q: q.values, k: k.values, v: v.values, dout: dout.values };
  const wanted = reference(s, operands);
  expectClose(out.values, wanted.out, tolerance);
  wanted.lse.forEach((total, i) => {
    if (total === -Infinity) expect(lse.values[i]).toBe(-Infinity);
    else expect(Math.abs(lse.values[i]! - total)).toBeLessThan(1e-5);
  });
  expectClose(dq.values, wanted.dq, tolerance);
  expectClose(dk.values, wanted.dk, tolerance);
  expectClose(dv.values, wanted.dv, tolerance);
}

test("any queries, keys, shift and window give float64's output and gradients", () => {
  const shape = fc.record({
    kvHeads: fc.integer({ min: 1, max: 2 }),
    group: fc.integer({ min: 1, max: 2 }),
    queries: fc.integer({ min: 1, max: 80 }),
    keys: fc.integer({ min: 1, max: 150 }),
    headDim: fc.constantFrom(1, 4, 6, 16),
    shift: fc.integer({ min: -90, max: 160 }),
    window: fc.constantFrom(0, 0, 1, 3, 5, 64, 100),
  });
  fc.assert(
    fc.property(shape, ({ group, kvHeads, ...s }) => {
      check({ ...s, kvHeads, heads: group * kvHeads });
    }),
    { numRuns: 60 },
  );
});

// Blocks have 64 queries and keys backward, 512 keys forward.
test.each([
  { queries: 130, keys: 1100, shift: 970, window: 0 },
  { queries: 130, keys: 1100, shift: 970, window: 530 },
  { queries: 600, keys: 600, shift: 0, window: 37 },
  { queries: 70, keys: 70, shift: 3, window: 0 },
  { queries: 70, keys: 70, shift: -3, window: 2 },
])("$queries queries, $keys keys, shift $shift, window $window cross blocks", (s) => {
  check({ heads: 2, kvHeads: 1, headDim: 4, ...s });
});

test("attention to two parts of the keys merges to attention to all", () => {
  const s = { heads: 3, kvHeads: 3, queries: 21, keys: 40, headDim: 6, shift: 7, window: 0 };
  const { arena, q, k, v, out, lse } = run(s, 4);
  const { kernels } = arena;
  const [all, allLse] = [out.values.slice(), lse.values.slice()];
  const width = s.heads * s.headDim;
  const [part, partLse] = [arena.unset(s.queries * width), arena.unset(s.heads * s.queries)];
  const space = arena.workspace(kernels.attentionWorkspace(1, s.heads, s.heads, s.keys, s.headDim));
  const half = 20;
  // The second half of the keys is not seen by the first queries at all.
  [0, half].forEach((from, n) => {
    const into = n === 0 ? [out, lse] : [part, partLse];
    kernels.attendForward(
      q.pointer,
      k.pointer + from * width * 4,
      v.pointer + from * width * 4,
      into[0]!.pointer,
      into[1]!.pointer,
      ...([1, s.heads, s.heads, s.queries, half, s.headDim, width, width] as const),
      s.shift - from,
      0,
      space,
    );
  });
  const sizes = [s.heads, s.queries, s.headDim] as const;
  kernels.attentionMerge(part.pointer, partLse.pointer, out.pointer, lse.pointer, ...sizes);
  expectClose(out.values, all, tolerance);
  expectClose(lse.values, allLse, tolerance);
});
