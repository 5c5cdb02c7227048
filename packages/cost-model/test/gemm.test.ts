import fc from "fast-check";
import { expect, test } from "vitest";
import { accelerator } from "@trireme/topology";
import { defineModel, definePlan, stageOperators, stages } from "@trireme/workload";
import { measuredPricer, rooflinePricer } from "@trireme/cost-model";

/** The forward product of `rows` by `out` over `inner`, through a model that has it. */
function product(
  rows: number,
  out: number,
  inner: number,
): Parameters<ReturnType<typeof rooflinePricer>["operator"]>[0] {
  return {
    key: `gemm/bf16/forward/1x${rows}x${out}x${inner}`,
    kind: "gemm",
    form: "bf16",
    pass: "forward",
    shape: [1, rows, out, inner],
    flops: 2 * rows * out * inner,
    bytes: 2 * (rows * inner + inner * out + rows * out),
    count: 1,
  };
}

test("a large product on an A100 runs near the measured best, never above it", () => {
  // stas00/ml-engineering, mamf-finder: 252.9 TFLOP/s at 2048 x 5120 x 6144 on an A100 PCIe.
  const time = rooflinePricer(accelerator("a100-80"), "bf16").operator(product(2048, 5120, 6144));
  const rate = (2 * 2048 * 5120 * 6144) / time / 1e12;
  expect(rate).toBeGreaterThan(0.85 * 252.9);
  expect(rate).toBeLessThan(1.02 * 252.9);
});

test("one tile past a full wave costs another wave", () => {
  const pricer = rooflinePricer(accelerator("a100-80"), "bf16");
  // 108 multiprocessors: 108 tiles of 256 x 128 are one wave; 109 columns of tiles are two.
  const full = pricer.operator(product(256, 128 * 108, 8192));
  const more = pricer.operator(product(256, 128 * 110, 8192));
  expect(more / full).toBeGreaterThan(1.2);
});

test("on Blackwell a tile is stored behind the arithmetic of the next, in products of many waves and short inner dimensions", () => {
  // stas00/ml-engineering, mamf-finder: 1769 TFLOP/s at 12288 x 18432 x 1024 on a B300, 1745 at 1792 x 16128 x 3072 on a B200.
  // The best of many shapes is a lucky one, so that the model may be slower, by up to 16 %.
  for (const [name, m, n, k, best] of [
    ["b300", 12_288, 18_432, 1024, 1769],
    ["b200", 1792, 16_128, 3072, 1745],
  ] as const) {
    const time = rooflinePricer(accelerator(name), "bf16").operator(product(m, n, k));
    const ratio = (2 * m * n * k) / time / 1e12 / best;
    expect(ratio).toBeGreaterThan(0.84);
    expect(ratio).toBeLessThan(1.05);
  }
  // Doubling the inner dimension doubles what a wave takes, but for the one start and end: on Hopper each wave has its own.
  const growth = (name: string): number => {
    const pricer = rooflinePricer(accelerator(name), "bf16");
    return pricer.operator(product(8192, 8192, 1024)) / pricer.operator(product(8192, 8192, 512));
  };
  expect(growth("b200")).toBeGreaterThan(1.8);
  expect(growth("h100")).toBeLessThan(1.8);
});

test("Hopper has tiles of 160 columns, which fill it where powers of two leave half of a wave", () => {
  // mamf-finder's best of 8-bit products on an H200: 1453 TFLOP/s at 1280 x 4096 x 12032. Of tiles of 256 x 128 there are 160,
  // a wave of 132 and another; of 128 x 160 there are 260, two waves that are full.
  const time = rooflinePricer(accelerator("h200"), "bf16").operator({
    ...product(1280, 4096, 12_032),
    form: "fp8",
    key: "gemm/fp8/forward/1x1280x4096x12032",
  });
  const ratio = (2 * 1280 * 4096 * 12_032) / time / 1e12 / 1453;
  expect(ratio).toBeGreaterThan(0.78);
  expect(ratio).toBeLessThan(1.05);
});

test("a tile that is stored costs more the shorter the inner dimension", () => {
  // DeepGEMM's README, H800, 4096 x 32768 x 512: 590, later 751 TFLOP/s, where 4096 x 4096 x 7168 has 1304 and 1265.
  const pricer = rooflinePricer(accelerator("h800"), "bf16");
  const rate = (m: number, n: number, k: number): number =>
    (2 * m * n * k) /
    pricer.operator({ ...product(m, n, k), form: "fp8", key: `gemm/fp8/${n}x${k}` }) /
    1e12;
  expect(rate(4096, 32_768, 512)).toBeGreaterThan(590);
  expect(rate(4096, 32_768, 512)).toBeLessThan(1.1 * 751);
  expect(Math.abs(rate(4096, 4096, 7168) / 1280 - 1)).toBeLessThan(0.06);
});

test("one kernel for many groups, written for Hopper, has no such room", () => {
  const pricer = rooflinePricer(accelerator("b200"), "bf16");
  const single = product(8192, 8192, 512);
  const fused = (k: number): number =>
    pricer.operator({
      ...product(8192, 8192, k),
      kind: "grouped-gemm",
      form: "bf16-fused",
      key: `grouped-gemm/bf16-fused/forward/1x8192x8192x${k}`,
    });
  // Half the rate, and the start and end of each wave.
  expect(fused(512)).toBeGreaterThan(2 * pricer.operator(single));
  expect(fused(1024) / fused(512)).toBeLessThan(1.8);
});

test("no product beats the sustained rate or the memory", () => {
  const a = accelerator("h100");
  const pricer = rooflinePricer(a, "bf16");
  const size = fc.integer({ min: 1, max: 70_000 });
  fc.assert(
    fc.property(size, size, size, (m, n, k) => {
      const op = product(m, n, k);
      const time = pricer.operator(op);
      expect(time).toBeGreaterThan(op.flops / a.peak.bf16!);
      expect(time).toBeGreaterThan(op.bytes / a.memoryBandwidth);
      expect(Number.isFinite(time)).toBe(true);
    }),
  );
});

test("a longer inner dimension never takes less", () => {
  const pricer = rooflinePricer(accelerator("a100-80"), "bf16");
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 5000 }),
      fc.integer({ min: 1, max: 5000 }),
      fc.integer({ min: 1, max: 5000 }),
      (m, n, k) => {
        // Cutting the inner dimension becomes possible at a length, so that the parts may gain a little there.
        expect(pricer.operator(product(m, n, 2 * k))).toBeGreaterThan(
          0.9 * pricer.operator(product(m, n, k)),
        );
      },
    ),
  );
});

test("attention costs its arithmetic at long and its ramp at short sequences", () => {
  const pricer = rooflinePricer(accelerator("a100-80"), "bf16");
  // FlashAttention-2's Figure 4: causal, forward and backward, head dimension 128, 16k tokens of
  // width 2048, TFLOP/s counted as 3.5 times half the score matrix. Within 12 % of the bars.
  for (const [sequence, bar] of [
    [512, 99],
    [1024, 133],
    [2048, 155],
  ] as const) {
    const m = defineModel({ layers: 1, hidden: 2048, heads: 16, vocab: 10, context: sequence });
    const p = definePlan(m, { globalBatch: 16_384 / sequence, microbatch: 16_384 / sequence });
    const operators = stageOperators(m, p, stages(m, p)[0]!).operators.filter(
      (o) => o.kind === "attention",
    );
    const time = operators.reduce((sum, o) => sum + pricer.operator(o), 0);
    const flops = 3.5 * 2 * 16_384 * sequence * 2048;
    expect(flops / time / 1e12 / bar).toBeGreaterThan(0.88);
    expect(flops / time / 1e12 / bar).toBeLessThan(1.12);
  }
});

test("a precision that a device lacks is refused with one that it has", () => {
  expect(() => rooflinePricer(accelerator("v100-32"), "bf16")).toThrow(
    "v100-32 has no bf16 arithmetic; use fp16",
  );
});

test("a measured price is the table's, and a missing one names its key", () => {
  const op = product(64, 64, 64);
  const pricer = measuredPricer(new Map([[op.key, 0.25]]));
  expect(pricer.operator(op)).toBe(0.25);
  expect(() => pricer.operator(product(64, 64, 65))).toThrow(
    "no measured time for gemm/bf16/forward/1x64x64x65 among 1; measure it (nearest: gemm/bf16/forward/1x64x64x64)",
  );
});
