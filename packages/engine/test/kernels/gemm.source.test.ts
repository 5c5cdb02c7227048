import fc from "fast-check";
import { expect, test } from "vitest";
import { Arena, difference } from "./arena.ts";

interface Case {
  transA: boolean;
  transB: boolean;
  m: number;
  n: number;
  k: number;
  alpha: number;
  beta: number;
  /** Elements between the end of a row and the next. */
  gap: number;
}

/** Runs the kernel and returns what it made, what float64 makes, and the bound on their difference. */
function multiply(c: Case, arena: Arena = new Arena({ seed: c.m * 31 + c.n * 7 + c.k })) {
  const { transA, transB, m, n, k, alpha, beta, gap } = c;
  const lda = (transA ? m : k) + gap;
  const ldb = (transB ? k : n) + gap;
  const ldc = n + gap;
  const a = arena.normal(lda * (transA ? k : m));
  const b = arena.normal(ldb * (transB ? n : k));
  const out = beta === 0 ? arena.unset(ldc * m) : arena.normal(ldc * m);
  const before = Float64Array.from(out.values);
  const workspace = arena.workspace(arena.kernels.gemmWorkspace(m, n, k));
  arena.kernels.gemm(
    transA,
    transB,
    m,
    n,
    k,
    alpha,
    a.pointer,
    lda,
    b.pointer,
    ldb,
    beta,
    out.pointer,
    ldc,
    workspace,
  );
  arena.checkGuards();
  const wanted = Float64Array.from(before);
  for (let i = 0; i < m; i++) {
    for (let j = 0; j < n; j++) {
      let sum = 0;
      for (let p = 0; p < k; p++) {
        const x = a.values[transA ? p * lda + i : i * lda + p]!;
        const y = b.values[transB ? j * ldb + p : p * ldb + j]!;
        sum += x * y;
      }
      wanted[i * ldc + j] = alpha * sum + (beta === 0 ? 0 : beta * before[i * ldc + j]!);
    }
  }
  return { got: out.values, wanted };
}

/**
 * Partial sums of p normal products are near sqrt(p), each rounded by half an ulp: together a
 * deviation of about k / 2.4 units of 2^-24. Ten of them also cover the largest sums of a matrix.
 */
function bound(c: Case): number {
  return 2 ** -24 * 4 * (c.k + 40) * Math.max(1, Math.abs(c.alpha), Math.abs(c.beta));
}

const size = fc.oneof(fc.integer({ min: 0, max: 40 }), fc.constantFrom(1, 5, 6, 7, 8, 12, 13, 97));

test("every shape, transpose, factor and row gap gives the float64 product", () => {
  fc.assert(
    fc.property(
      fc.record({
        transA: fc.boolean(),
        transB: fc.boolean(),
        m: size,
        n: size,
        k: size,
        alpha: fc.constantFrom(1, 0, -0.5, 3),
        beta: fc.constantFrom(0, 1, -2, 0.25),
        gap: fc.constantFrom(0, 0, 1, 5),
      }),
      (c) => {
        const { got, wanted } = multiply(c);
        // Gaps of an unset C stay NaN.
        const [x, y] = [got, wanted].map((array) => Array.from(array, (v) => (v !== v ? 7 : v)));
        expect(difference(x!, y!).error).toBeLessThanOrEqual(bound(c));
      },
    ),
    { numRuns: 150 },
  );
});

test.each([
  { m: 50, n: 30, k: 1000 },
  { m: 250, n: 40, k: 31 },
  { m: 9, n: 1700, k: 17 },
  { m: 98, n: 772, k: 386 },
])("blocks of $m x $n x $k meet at their borders", ({ m, n, k }) => {
  for (const transA of [false, true]) {
    for (const transB of [false, true]) {
      const c = { transA, transB, m, n, k, alpha: 1, beta: 1, gap: 0 };
      const { got, wanted } = multiply(c, new Arena({ seed: m }));
      expect(difference(got, wanted).error).toBeLessThanOrEqual(bound(c));
    }
  }
});

test("offsets above 2 GiB reach their operands", () => {
  const c = { transA: true, transB: false, m: 33, n: 17, k: 21, alpha: 1, beta: 0, gap: 0 };
  const { got, wanted } = multiply(c, new Arena({ start: 2 ** 31 + 4096, bytes: 1e6 }));
  expect(difference(got, wanted).error).toBeLessThanOrEqual(bound(c));
});

test("the same product has the same bits each time and from each row of a batch", () => {
  const c = { transA: false, transB: true, m: 61, n: 45, k: 500, alpha: 1, beta: 0, gap: 0 };
  const [first, second] = [multiply(c), multiply(c)];
  expect(Array.from(second.got)).toEqual(Array.from(first.got));

  // Row i of the product is the product of row i: micro-batches do not change a token's numbers.
  const arena = new Arena();
  const [m, n, k] = [26, 19, 77];
  const a = arena.normal(m * k);
  const b = arena.normal(k * n);
  const [whole, rows] = [arena.unset(m * n), arena.unset(m * n)];
  const space = arena.workspace(arena.kernels.gemmWorkspace(m, n, k));
  const run = (count: number, from: number, to: { pointer: number }) =>
    arena.kernels.gemm(
      0,
      0,
      count,
      n,
      k,
      1,
      a.pointer + from * k * 4,
      k,
      b.pointer,
      n,
      0,
      to.pointer + from * n * 4,
      n,
      space,
    );
  run(m, 0, whole);
  for (let i = 0; i < m; i += 2) run(2, i, rows);
  expect(Array.from(rows.values)).toEqual(Array.from(whole.values));
});

test("NaN and infinity reach the sums they belong to and no others", () => {
  const arena = new Arena();
  const [m, n, k] = [14, 11, 9];
  const a = arena.normal(m * k);
  const b = arena.normal(k * n);
  a.values[5 * k + 3] = NaN;
  b.values[2 * n + 7] = Infinity;
  const c = arena.unset(m * n);
  const space = arena.workspace(arena.kernels.gemmWorkspace(m, n, k));
  arena.kernels.gemm(0, 0, m, n, k, 1, a.pointer, k, b.pointer, n, 0, c.pointer, n, space);
  for (let i = 0; i < m; i++) {
    for (let j = 0; j < n; j++) {
      const value = c.values[i * n + j]!;
      if (i === 5) expect(value).toBeNaN();
      else if (j === 7) expect(Math.abs(value)).toBe(Infinity);
      else expect(Number.isFinite(value)).toBe(true);
    }
  }
});
