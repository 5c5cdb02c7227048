import { measureOperators } from "@trireme/engine";
import { type KernelChoice } from "@trireme/run";
import { stageOperators, stages } from "@trireme/workload";
import { expect, test } from "vitest";
import { fusedKernels } from "../src/kernels/fused-kernels.ts";
import { openBlas } from "../src/kernels/open-blas.ts";
import { createKernels, kernelMemoryDescriptor } from "../src/kernels/kernels.ts";
import { smallRun, trainSteps, withRuntime } from "./small-run.ts";

const memory = new WebAssembly.Memory(kernelMemoryDescriptor(1e6));
const found = fusedKernels(memory);

/** Whether this processor rounds once where it multiplies and adds. */
function roundsOnce(): boolean {
  if (!found.ok) return false;
  const [a, b, c, space] = [65_536, 131_072, 262_144, 524_288];
  const [n, k] = [16, 64];
  const values = (pointer: number, count: number): Float32Array =>
    new Float32Array(memory.buffer, pointer, count);
  values(a, n * k).forEach((_, i, all) => (all[i] = Math.sin(i + 1)));
  values(b, n * k).forEach((_, i, all) => (all[i] = Math.cos(i + 1)));
  const product = ({ gemm }: Pick<ReturnType<typeof createKernels>, "gemm">): Float32Array => {
    gemm(false, false, n, n, k, 1, a, k, b, n, 0, c, n, space);
    return values(c, n * n).slice();
  };
  const plain = product(createKernels(memory));
  return product(found.backend).some((value, i) => value !== plain[i]);
}

test.skipIf(!found.ok)("a run computes by the kernels that it names", async () => {
  const losses = (kernels: KernelChoice): Promise<number[]> => {
    const run = smallRun({ dp: 2 });
    const named = { ...run, engine: { ...run.engine, kernels } };
    return withRuntime(named, (runtime) => trainSteps(runtime, 0, 5));
  };
  const [plain, fused] = [await losses("wasm"), await losses("fused")];
  expect(fused.some((loss, step) => loss !== plain[step])).toBe(roundsOnce());
  // Sums of a hundred products at most, rounded less often.
  fused.forEach((loss, step) => expect(Math.abs(loss - plain[step]!)).toBeLessThan(1e-4));
});

test.skipIf(!found.ok)("operators are timed by the kernels of their run", async () => {
  const { model, plan } = smallRun({});
  const { operators } = stageOperators(model, plan, stages(model, plan)[0]!);
  const options = { budget: 0.1, cores: 1, kernels: "fused" } as const;
  const times = await measureOperators(operators, options);
  expect(times.size).toBe(new Set(operators.map(({ key }) => key)).size);
  const native = measureOperators(operators, { ...options, kernels: "native" });
  const blas = openBlas(memory);
  // Where there is no OpenBLAS its run is refused, and is not timed by other kernels.
  if (blas.ok) expect((await native).size).toBe(times.size);
  else await expect(native).rejects.toThrow(blas.error.message);
});
