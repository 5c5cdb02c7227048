import { expect, test } from "vitest";
import { attention } from "../src/operators/attention.ts";
import { latentHeads, latentValues } from "../src/operators/latent-heads.ts";
import { Tape } from "../src/tape/tape.ts";
import { Bench } from "./finite-differences.ts";

test("attention over latent heads is that of the formulas, key by key", () => {
  const bench = new Bench();
  const [batch, tokens, heads] = [2, 7, 3];
  const [n, r, v] = [5, 4, 6];
  const rows = batch * tokens;
  const queries = bench.input([rows, heads * (n + r)]);
  const keysValues = bench.input([rows, heads * (n + v)]);
  const key = bench.input([rows, r]);
  // Two pieces, as a rank of context parallelism holds them; positions in order within a sample.
  const pieces = [
    { start: 3, count: 4 },
    { start: 20, count: 3 },
  ];
  const rotaryBase = 100;
  const dims = { nopeDim: n, ropeDim: r, valueDim: v };
  const shape = { ...dims, batch, pieces, heads, rotaryBase };
  const tape = new Tape(bench.kernels, bench.pool);
  const qkv = latentHeads(tape, queries, keysValues, key, shape);
  const whole = [{ start: 0, count: tokens }];
  const plain = { batch, pieces: whole, heads, kvHeads: heads, headDim: n + r, window: 0 };
  const { y } = attention(tape, qkv, { ...plain, rotaryBase: undefined });
  const actual = bench.values(latentValues(tape, y, shape).y.value);

  // DeepSeek-V2, equations 14 to 17, in double precision.
  const [q, kv, k] = [queries, keysValues, key].map((x) => bench.values(x.value));
  const positions = pieces.flatMap(({ start, count }) =>
    Array.from({ length: count }, (_, i) => start + i),
  );
  const turned = (values: Float32Array, at: number, position: number): number[] =>
    Array.from({ length: r }, (_, i) => {
      const pair = i - (i % 2);
      const angle = position * rotaryBase ** (-pair / r);
      const [a, b] = [values[at + pair]!, values[at + pair + 1]!];
      return i % 2 === 0
        ? a * Math.cos(angle) - b * Math.sin(angle)
        : b * Math.cos(angle) + a * Math.sin(angle);
    });
  for (let sample = 0; sample < batch; sample++) {
    for (let t = 0; t < tokens; t++) {
      for (let head = 0; head < heads; head++) {
        const row = sample * tokens + t;
        const from = row * heads * (n + r) + head * (n + r);
        const query = turned(q!, from + n, positions[t]!);
        const scores = Array.from({ length: t + 1 }, (_, s) => {
          const other = sample * tokens + s;
          const to = other * heads * (n + v) + head * (n + v);
          const rotated = turned(k!, other * r, positions[s]!);
          let dot = query.reduce((sum, x, i) => sum + x * rotated[i]!, 0);
          for (let i = 0; i < n; i++) dot += q![from + i]! * kv![to + i]!;
          return Math.exp(dot / Math.sqrt(n + r));
        });
        const total = scores.reduce((a, b) => a + b, 0);
        for (let i = 0; i < v; i++) {
          const wanted = scores.reduce((sum, score, s) => {
            const to = (sample * tokens + s) * heads * (n + v) + head * (n + v);
            return sum + (score / total) * kv![to + n + i]!;
          }, 0);
          // Sums of nine products and seven rows in float32.
          expect(actual[row * heads * v + head * v + i]).toBeCloseTo(wanted, 5);
        }
      }
    }
  }
});
