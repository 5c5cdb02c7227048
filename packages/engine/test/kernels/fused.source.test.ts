import { createRng } from "@trireme/core";
import fc from "fast-check";
import { expect, test } from "vitest";
import { fusedKernels } from "../../src/kernels/fused-kernels.ts";
import { withBackend } from "../../src/kernels/gemm-backend.ts";
import { type Kernels, createKernels, kernelMemoryDescriptor } from "../../src/kernels/kernels.ts";
import { type AttentionCore, wholeCore } from "../../src/operators/attention.ts";
import { whole } from "../whole-attention.ts";

const memory = new WebAssembly.Memory(kernelMemoryDescriptor(16e6));
const plain = createKernels(memory);
const found = fusedKernels(memory);
const fused = found.ok ? withBackend(plain, memory, "fused") : plain;
const [a, b, c, d, e, lse, space] = [1, 2, 3, 4, 5, 6, 7].map((i) => i * 2 ** 20) as [
  number,
  number,
  number,
  number,
  number,
  number,
  number,
];

function fill(pointer: number, count: number, seed: number): void {
  const rng = createRng(seed);
  const values = new Float32Array(memory.buffer, pointer, count);
  for (let i = 0; i < count; i++) values[i] = rng.normal();
}

/** What `run` leaves at `out`, by the plain kernels and by the fused ones. */
function both(out: number, count: number, run: (kernels: Kernels) => void): Float32Array[] {
  const before = new Float32Array(memory.buffer, out, count).slice();
  return [plain, fused].map((kernels) => {
    const values = new Float32Array(memory.buffer, out, count);
    values.set(before);
    run(kernels);
    return values.slice();
  });
}

function greatestDifference([x, y]: Float32Array[]): number {
  return x!.reduce((most, value, i) => Math.max(most, Math.abs(value - y![i]!)), 0);
}

test.skipIf(!found.ok)("fused products are the plain ones in all shapes and transposes", () => {
  const size = fc.oneof(fc.integer({ min: 1, max: 30 }), fc.constantFrom(12, 23, 264, 265, 300));
  fc.assert(
    fc.property(
      fc.record({
        transA: fc.boolean(),
        transB: fc.boolean(),
        m: size,
        n: size,
        k: size,
        alpha: fc.constantFrom(1, -0.5),
        beta: fc.constantFrom(0, 1, 0.25),
      }),
      ({ transA, transB, m, n, k, alpha, beta }) => {
        fill(a, m * k, m);
        fill(b, k * n, n);
        fill(c, m * n + 1, k);
        const needs = fused.gemmWorkspace(m, n, k);
        fill(space + needs, 4, 1);
        const guard = new Float32Array(memory.buffer, space + needs, 4).slice();
        const [lda, ldb] = [transA ? m : k, transB ? k : n];
        const got = both(c, m * n + 1, ({ gemm }) => {
          gemm(transA, transB, m, n, k, alpha, a, lda, b, ldb, beta, c, n, space);
        });
        // Sums of k normal products, rounded half as often.
        expect(greatestDifference(got)).toBeLessThanOrEqual(2 ** -24 * 4 * (k + 40));
        expect(new Float32Array(memory.buffer, space + needs, 4)).toEqual(guard);
      },
    ),
    { numRuns: 200 },
  );
});

test.skipIf(!found.ok)("a row of a fused product has the same bits in any other product", () => {
  const [m, n, k] = [29, 21, 77];
  fill(a, m * k, 1);
  fill(b, k * n, 2);
  fused.gemm(0, 0, m, n, k, 1, a, k, b, n, 0, c, n, space);
  for (const step of [1, 2, 6, 7]) {
    for (let i = 0; i < m; i += step) {
      const rows = Math.min(step, m - i);
      fused.gemm(0, 0, rows, n, k, 1, a + i * k * 4, k, b, n, 0, d + i * n * 4, n, space);
    }
    expect(new Uint32Array(memory.buffer, d, m * n)).toEqual(
      new Uint32Array(memory.buffer, c, m * n),
    );
  }
});

test.skipIf(!found.ok)("what is not finite reaches the same places", () => {
  const [m, n, k] = [14, 11, 9];
  fill(a, m * k, 1);
  fill(b, k * n, 2);
  new Float32Array(memory.buffer, a)[5 * k + 3] = NaN;
  new Float32Array(memory.buffer, b)[2 * n + 7] = Infinity;
  const [x, y] = both(c, m * n, ({ gemm }) => {
    gemm(0, 0, m, n, k, 1, a, k, b, n, 0, c, n, space);
  });
  expect(Array.from(y!, Number.isFinite)).toEqual(Array.from(x!, Number.isFinite));
  expect(Array.from(y!, Number.isNaN)).toEqual(Array.from(x!, Number.isNaN));
});

test.skipIf(!found.ok)("fused attention is the plain one, forward and backward", () => {
  const [batch, heads, sequence, headDim] = [2, 3, 75, 20];
  const [width, rows] = [heads * headDim, batch * sequence];
  fill(a, rows * 3 * width, 1);
  fill(d, rows * width, 2);
  const core = (kernels: Kernels): AttentionCore =>
    wholeCore(kernels, whole(batch, heads, heads, sequence, headDim), () => space);
  const out = both(b, rows * width, (kernels) => {
    core(kernels).forward(a, b, lse);
  });
  // Averages of normal values, and sums of 75 products of them.
  expect(greatestDifference(out)).toBeLessThan(1e-5);
  const gradient = both(e, rows * 3 * width, (kernels) => {
    core(kernels).backward(a, b, lse, d, e);
  });
  expect(greatestDifference(gradient)).toBeLessThan(1e-4);
});

test.skipIf(!found.ok)("fused GELU, its slope and the loss are the plain ones", () => {
  const n = 1003;
  fill(a, n, 1);
  fill(b, n, 2);
  // Values near 1, rounded about ten times.
  expect(greatestDifference(both(c, n, (k) => k.geluForward(a, c, n)))).toBeLessThan(2e-6);
  expect(greatestDifference(both(c, n, (k) => k.geluBackward(a, b, c, n)))).toBeLessThan(4e-6);
  new Int32Array(memory.buffer, d, 17).fill(3);
  const loss = both(e, 17, (k) => k.crossEntropyLoss(a, d, e, 17, 59));
  expect(greatestDifference(loss)).toBeLessThan(4e-6);
});
