import { expect, test } from "vitest";
import { fusedKernels } from "../../src/kernels/fused-kernels.ts";
import { withBackend } from "../../src/kernels/gemm-backend.ts";
import { createKernels, kernelMemoryDescriptor } from "../../src/kernels/kernels.ts";
import { openBlasCore } from "../../src/kernels/open-blas-core.ts";
import { openBlas } from "../../src/kernels/open-blas.ts";

test("a processor's newest kernels are known by its flags", () => {
  expect(openBlasCore("flags\t\t: fpu sse2 avx2 fma avx512f avx512dq avx512bw avx512vl")).toBe(
    "SkylakeX",
  );
  expect(openBlasCore("model name\t: X\nflags\t\t: fpu fma avx2\nbugs\t: none")).toBe("Haswell");
  expect(openBlasCore("flags\t\t: fpu sse2 avx")).toBeUndefined();
  expect(openBlasCore("Features\t: fp asimd")).toBeUndefined();
});

const memory = new WebAssembly.Memory(kernelMemoryDescriptor(8e6));
const kernels = createKernels(memory);
const found = { native: openBlas(memory), fused: fusedKernels(memory) };

/** Values in [-1, 1] at a pointer. */
function place(pointer: number, count: number): void {
  const values = new Float32Array(memory.buffer, pointer, count);
  for (let i = 0; i < count; i++) values[i] = Math.sin(i * 12.9898 + pointer);
}

for (const choice of ["native", "fused"] as const) {
  const backend = found[choice];
  test.skipIf(!backend.ok)(`${choice} products are the kernels' in all transposes`, () => {
    const other = withBackend(kernels, memory, choice);
    const [m, n, k] = [37, 29, 53];
    const [a, b, wasm, theirs, space] = [65_536, 2e6, 3e6, 4e6, 5e6];
    place(a, m * k);
    place(b, k * n);
    for (const [ta, tb] of [
      [false, false],
      [true, false],
      [false, true],
      [true, true],
    ] as const) {
      for (const beta of [0, 1]) {
        place(wasm, m * n);
        const got = new Float32Array(memory.buffer, theirs, m * n);
        got.set(new Float32Array(memory.buffer, wasm, m * n));
        const [lda, ldb] = [ta ? m : k, tb ? k : n];
        kernels.gemm(ta, tb, m, n, k, 0.5, a, lda, b, ldb, beta, wasm, n, space);
        other.gemm(ta, tb, m, n, k, 0.5, a, lda, b, ldb, beta, theirs, n, space);
        // Sums of 53 products below 1, in another order or rounded less often.
        new Float32Array(memory.buffer, wasm, m * n).forEach((value, i) => {
          expect(Math.abs(got[i]! - value)).toBeLessThan(1e-5);
        });
      }
    }
    // What is no product is fused where that can be had, and else stays with the kernels.
    expect(other.attendForward !== kernels.attendForward).toBe(found.fused.ok);
  });

  test.skipIf(backend.ok)(`without means ${choice} says what it lacks`, () => {
    expect(() => withBackend(kernels, memory, choice)).toThrow(
      /npm install koffi|apt install|relaxed SIMD/,
    );
  });
}

test("`auto` takes the fastest kernels that there are", () => {
  const chosen = withBackend(kernels, memory, "auto");
  if (!found.fused.ok && !found.native.ok) expect(chosen).toEqual({ ...kernels });
  expect(chosen.gemm !== kernels.gemm).toBe(found.fused.ok || found.native.ok);
  // OpenBLAS makes products alone.
  expect(chosen.attendForward !== kernels.attendForward).toBe(found.fused.ok);
  expect(withBackend(kernels, memory, "wasm")).toBe(kernels);
});
