import { expect, test } from "vitest";
import { accelerator } from "@trireme/topology";
import { rooflinePricer } from "@trireme/cost-model";
import type { Operator } from "@trireme/workload";

function product(m: number, n: number, k: number): Operator {
  return {
    key: `gemm/bf16/forward/1x${m}x${n}x${k}`,
    kind: "gemm",
    form: "bf16",
    pass: "forward",
    shape: [1, m, n, k],
    flops: 2 * m * n * k,
    bytes: 2 * (k * (m + n) + m * n),
    count: 1,
  };
}

const seconds = (name: string, m: number, n: number, k: number): number =>
  rooflinePricer(accelerator(name), "bf16").operator(product(m, n, k));

test("a matrix that fills half of an array takes the time of a whole one", () => {
  // 128 x 128 on a v5p, 256 x 256 on a v6e: 1,152 is nine of the first, and four and a half of the second.
  const m = 65_536;
  expect(seconds("tpu-v6e", m, 1152, 1152)).toBe(seconds("tpu-v6e", m, 1280, 1280));
  expect(seconds("tpu-v5p", m, 1152, 1152)).toBeLessThan(seconds("tpu-v5p", m, 1280, 1280));
  // Rows stream through eight at a time.
  expect(seconds("tpu-v5p", m - 7, 4096, 4096)).toBe(seconds("tpu-v5p", m, 4096, 4096));
});

test("a Gaudi's large products reach what was measured", () => {
  // stas00/ml-engineering pull request 117: 418.7 TFLOP/s at 14336 x 15360 x 2048, all multiples of 256; and of Gaudi 3 in 118,
  // 1243 at 16384 x 4096 x 768.
  for (const [name, m, n, k, best] of [
    ["gaudi2", 14_336, 15_360, 2048, 418.7],
    ["gaudi3", 16_384, 4096, 768, 1243],
  ] as const) {
    const ratio = (2 * m * n * k) / seconds(name, m, n, k) / 1e12 / best;
    // The best of many shapes; the gap between two kernels is a twentieth of the second.
    expect(ratio).toBeGreaterThan(0.93);
    expect(ratio).toBeLessThan(1.01);
  }
});
