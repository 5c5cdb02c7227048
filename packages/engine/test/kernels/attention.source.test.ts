import fc from "fast-check";
import { expect, test } from "vitest";
import { wholeCore } from "../../src/operators/attention.ts";
import { whole } from "../whole-attention.ts";
import { Arena, dot, expectClose, numericGradient } from "./arena.ts";

interface Shape {
  batch: number;
  heads: number;
  kvHeads: number;
  sequence: number;
  headDim: number;
}

const width = (s: Shape): number => (s.heads + 2 * s.kvHeads) * s.headDim;

/** Causal attention, one score at a time, in float64. */
function reference(qkv: ArrayLike<number>, s: Shape): { out: Float64Array; lse: Float64Array } {
  const { batch, heads, kvHeads, sequence, headDim } = s;
  const out = new Float64Array(batch * sequence * heads * headDim);
  const lse = new Float64Array(batch * heads * sequence);
  const at = (b: number, position: number, head: number, d: number): number =>
    qkv[(b * sequence + position) * width(s) + head * headDim + d]!;
  for (let b = 0; b < batch; b++) {
    for (let head = 0; head < heads; head++) {
      const key = heads + Math.floor(head / (heads / kvHeads));
      for (let i = 0; i < sequence; i++) {
        const scores = Float64Array.from({ length: i + 1 }, (_, j) => {
          let sum = 0;
          for (let d = 0; d < headDim; d++) sum += at(b, i, head, d) * at(b, j, key, d);
          return sum / Math.sqrt(headDim);
        });
        const top = Math.max(...scores);
        const total = top + Math.log(scores.reduce((sum, x) => sum + Math.exp(x - top), 0));
        lse[(b * heads + head) * sequence + i] = total;
        const row = ((b * sequence + i) * heads + head) * headDim;
        for (let j = 0; j <= i; j++) {
          const p = Math.exp(scores[j]! - total);
          for (let d = 0; d < headDim; d++) out[row + d]! += p * at(b, j, key + kvHeads, d);
        }
      }
    }
  }
  return { out, lse };
}

/** The backward pass by its textbook formula, with the whole matrix, in float64. */
function referenceGradient(qkv: ArrayLike<number>, dout: ArrayLike<number>, s: Shape) {
  const { batch, heads, kvHeads, sequence, headDim } = s;
  const { out, lse } = reference(qkv, s);
  const dqkv = new Float64Array(qkv.length);
  const root = Math.sqrt(headDim);
  for (let b = 0; b < batch; b++) {
    for (let head = 0; head < heads; head++) {
      const key = heads + Math.floor(head / (heads / kvHeads));
      const place = (position: number, h: number): number =>
        (b * sequence + position) * width(s) + h * headDim;
      for (let i = 0; i < sequence; i++) {
        const q = place(i, head);
        const o = ((b * sequence + i) * heads + head) * headDim;
        const slice = (x: ArrayLike<number>, from: number): number[] =>
          Array.from({ length: headDim }, (_, d) => x[from + d]!);
        const g = slice(dout, o);
        const delta = dot(g, slice(out, o));
        for (let j = 0; j <= i; j++) {
          const [k, v] = [place(j, key), place(j, key + kvHeads)];
          const score = dot(slice(qkv, q), slice(qkv, k)) / root;
          const p = Math.exp(score - lse[(b * heads + head) * sequence + i]!);
          const slope = (p * (dot(g, slice(qkv, v)) - delta)) / root;
          for (let d = 0; d < headDim; d++) {
            dqkv[q + d]! += slope * qkv[k + d]!;
            dqkv[k + d]! += slope * qkv[q + d]!;
            dqkv[v + d]! += p * g[d]!;
          }
        }
      }
    }
  }
  return dqkv;
}

function run(s: Shape, arena: Arena = new Arena({ seed: s.sequence })) {
  const { batch, heads, kvHeads, sequence, headDim } = s;
  const rows = batch * sequence;
  const qkv = arena.normal(rows * width(s));
  const out = arena.unset(rows * heads * headDim);
  const lse = arena.unset(batch * heads * sequence);
  const dout = arena.normal(rows * heads * headDim);
  const dqkv = arena.unset(rows * width(s));
  const sizes = [batch, heads, kvHeads, sequence, headDim] as const;
  const space = arena.workspace(arena.kernels.attentionWorkspace(...sizes));
  const core = wholeCore(arena.kernels, whole(...sizes), () => space);
  const forward = () => core.forward(qkv.pointer, out.pointer, lse.pointer);
  const backward = () =>
    core.backward(qkv.pointer, out.pointer, lse.pointer, dout.pointer, dqkv.pointer);
  forward();
  backward();
  arena.checkGuards();
  return { qkv, out, lse, dout, dqkv, forward, backward };
}

// float32 scores near 3 carry 2e-7, exp passes it on; sums over keys and queries add a few times that.
const tolerance = 4e-6;

test("any heads, groups, length and head size give float64's output, logsumexp and gradients", () => {
  const shape = fc.record({
    batch: fc.integer({ min: 1, max: 2 }),
    kvHeads: fc.integer({ min: 1, max: 3 }),
    group: fc.integer({ min: 1, max: 3 }),
    sequence: fc.integer({ min: 1, max: 70 }),
    headDim: fc.constantFrom(1, 2, 3, 4, 7, 8, 16, 20, 33),
  });
  fc.assert(
    fc.property(shape, ({ batch, kvHeads, group, sequence, headDim }) => {
      const s = { batch, heads: group * kvHeads, kvHeads, sequence, headDim };
      const { qkv, out, lse, dout, dqkv } = run(s);
      const wanted = reference(qkv.values, s);
      expectClose(out.values, wanted.out, tolerance);
      expectClose(lse.values, wanted.lse, tolerance);
      expectClose(dqkv.values, referenceGradient(qkv.values, dout.values, s), tolerance);
    }),
    { numRuns: 25 },
  );
});

// Blocks have 64 queries and keys backward, 512 keys forward.
test.each([
  { sequence: 128, headDim: 12 },
  { sequence: 129, headDim: 12 },
  { sequence: 195, headDim: 12 },
  { sequence: 521, headDim: 4 },
])("a sequence of $sequence crosses blocks of queries and keys", ({ sequence, headDim }) => {
  const s = { batch: 1, heads: 2, kvHeads: 1, sequence, headDim };
  const { qkv, out, lse, dout, dqkv } = run(s);
  const wanted = reference(qkv.values, s);
  expectClose(out.values, wanted.out, tolerance);
  expectClose(lse.values, wanted.lse, tolerance);
  expectClose(dqkv.values, referenceGradient(qkv.values, dout.values, s), tolerance);
});

test("the gradient is the slope of the output by finite differences", () => {
  const s = { batch: 1, heads: 2, kvHeads: 1, sequence: 7, headDim: 4 };
  const { qkv, dout, dqkv } = run(s);
  const loss = (x: Float64Array): number => dot(reference(x, s).out, dout.values);
  expectClose(dqkv.values, numericGradient(loss, qkv.values), tolerance);
});

test("scores of hundreds neither overflow nor lose the winner", () => {
  const s = { batch: 1, heads: 1, kvHeads: 1, sequence: 150, headDim: 8 };
  const { qkv, out, lse, dqkv, forward, backward } = run(s);
  for (let i = 0; i < qkv.values.length; i++) qkv.values[i]! *= i % width(s) < 16 ? 20 : 1;
  forward();
  backward();
  const wanted = reference(qkv.values, s);
  expectClose(lse.values, wanted.lse, 2e-6);
  // A score of 1000 is rounded to 6e-5, and so is the logarithm of its weight.
  expectClose(out.values, wanted.out, 1e-3);
  expect(dqkv.values.every(Number.isFinite)).toBe(true);
});

test("tokens do not see the future", () => {
  const s = { batch: 1, heads: 2, kvHeads: 2, sequence: 140, headDim: 8 };
  const arena = new Arena();
  const { qkv, out, forward } = run(s, arena);
  const before = Array.from(out.values);
  const cut = 131;
  for (let i = cut * width(s); i < qkv.values.length; i++) qkv.values[i] = 10 * arena.rng.normal();
  forward();
  const row = s.heads * s.headDim;
  expect(Array.from(out.values.subarray(0, cut * row))).toEqual(before.slice(0, cut * row));
  expect(Array.from(out.values.subarray(cut * row))).not.toEqual(before.slice(cut * row));
});

test("the same inputs give the same bits, in any batch", () => {
  const s = { batch: 3, heads: 4, kvHeads: 2, sequence: 70, headDim: 16 };
  const { qkv, out, dqkv, forward, backward } = run(s);
  const [first, gradient] = [Array.from(out.values), Array.from(dqkv.values)];
  forward();
  backward();
  expect(Array.from(out.values)).toEqual(first);
  expect(Array.from(dqkv.values)).toEqual(gradient);

  // The third sequence copied over the first gives the third's output there.
  const bytes = s.sequence * width(s);
  qkv.values.copyWithin(0, 2 * bytes, 3 * bytes);
  forward();
  const part = s.sequence * s.heads * s.headDim;
  expect(Array.from(out.values.subarray(0, part))).toEqual(first.slice(2 * part));
});

test("a query that is not a number spoils its own output and ends all the same", () => {
  const s = { batch: 1, heads: 2, kvHeads: 2, sequence: 90, headDim: 8 };
  const { qkv, out, dqkv, forward, backward } = run(s);
  qkv.values[41 * width(s) + 3] = NaN;
  forward();
  backward();
  const row = s.heads * s.headDim;
  out.values.forEach((value, i) => {
    const spoilt = Math.floor(i / row) === 41 && i % row < s.headDim;
    expect(Number.isNaN(value)).toBe(spoilt);
  });
  expect(dqkv.values.some(Number.isNaN)).toBe(true);
});
