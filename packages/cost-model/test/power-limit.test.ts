import { expect, test } from "vitest";
import { accelerator } from "@trireme/topology";
import { rooflinePricer, sustainedClock } from "@trireme/cost-model";
import type { Operator } from "@trireme/workload";

/** A product of `m` by `n` over `k` in one of two formats. */
function product(m: number, n: number, k: number, form: "bf16" | "fp8" = "bf16"): Operator {
  const operand = form === "bf16" ? 2 : 1;
  return {
    key: `gemm/${form}/forward/1x${m}x${n}x${k}`,
    kind: "gemm",
    form,
    pass: "forward",
    shape: [1, m, n, k],
    flops: 2 * m * n * k,
    bytes: operand * k * (m + n) + 2 * m * n,
    count: 1,
  };
}

function teraflops(name: string, op: Operator): number {
  return op.flops / rooflinePricer(accelerator(name), "bf16").operator(op) / 1e12;
}

test("products on CDNA 3 are limited by power alone: what AMD states of the MI300X gives the MI325X", () => {
  // ROCm blogs, Measuring Max-Achievable FLOPs, part 2: bf16 at 4096 x 4864 x 32896, fp8 at 4096 x 3648 x 32896. The first two set the
  // characteristics; the others follow by the cube law of power, which is 6 % short of them.
  for (const [name, form, n, stated, short] of [
    ["mi300x", "bf16", 4864, 708, 0.02],
    ["mi300x", "fp8", 3648, 1273, 0.04],
    ["mi325x", "bf16", 4864, 843, 0.08],
    ["mi325x", "fp8", 3648, 1519, 0.09],
  ] as const) {
    const ours = teraflops(name, product(4096, n, 32_896, form));
    expect(ours / stated).toBeGreaterThan(1 - short);
    expect(ours / stated).toBeLessThan(1.01);
  }
});

test("a part's clock is relative to the one its characteristics were measured on", () => {
  expect(sustainedClock(accelerator("mi300x"))).toBe(1);
  expect(sustainedClock(accelerator("mi355x"))).toBe(1);
  // A third more watts, 12 % more clock; a third fewer, less than the 8 % that its full clock is lower.
  expect(sustainedClock(accelerator("mi325x"))).toBeGreaterThan(1.1);
  expect(sustainedClock(accelerator("mi350x"))).toBeLessThan(1);
  const rate = (name: string): number => teraflops(name, product(8192, 8192, 8192));
  // AMD calls the real difference nearer 20 % than the datasheets' 8 %; the cube law says 15 %.
  expect(rate("mi355x") / rate("mi350x")).toBeGreaterThan(1.1);
  expect(rate("mi355x") / rate("mi350x")).toBeLessThan(1.2);
  // Where the limit is met in a step only, a kernel alone has the full clock.
  const op = product(8192, 8192, 8192);
  const alone = (tdp: number): number =>
    rooflinePricer({ ...accelerator("h100"), tdp }, "bf16").operator(op);
  expect(alone(500)).toBe(alone(700));
  const capped = rooflinePricer({ ...accelerator("mi300x"), tdp: 500 }, "bf16").operator(op);
  expect(capped).toBeGreaterThan(rooflinePricer(accelerator("mi300x"), "bf16").operator(op));
});
