// Published figures, typed here from the documents that the rows name: what a change of a row must
// not change unseen. Each line stands in its vendor's own units.
import { expect, test } from "vitest";
import { type Precision, accelerator, accelerators } from "@trireme/topology";

/** Dense TFLOP/s as printed; the factor is 2 where the vendor prints them with sparsity. */
test.each<[string, Precision, number, 1 | 2]>([
  ["v100-16", "fp16", 125, 1],
  ["v100-32", "fp32", 15.7, 1],
  ["a100-40", "bf16", 312, 1],
  ["a100-80", "tf32", 156, 1],
  ["a100-pcie-80", "bf16", 312, 1],
  ["a800-80", "bf16", 312, 1],
  ["h100", "bf16", 989.4, 1],
  ["h100", "fp8", 1978.9, 1],
  ["h100-pcie", "bf16", 756, 1],
  ["h100-pcie", "fp8", 1513, 1],
  ["h100-nvl", "bf16", 1671, 2],
  ["h100-nvl", "fp8", 3341, 2],
  ["h800", "bf16", 989.4, 1],
  ["h800", "fp64", 1, 1],
  ["h20", "bf16", 148, 1],
  ["h20", "fp8", 296, 1],
  ["h200", "bf16", 989.4, 1],
  ["gh200", "bf16", 989.4, 1],
  ["l40s", "bf16", 362.05, 1],
  ["l40s", "fp8", 733, 1],
  ["l20", "bf16", 119.5, 1],
  ["rtx3090", "bf16", 71, 1],
  ["rtx4090", "bf16", 165.2, 1],
  ["rtx4090", "fp8", 330.3, 1],
  ["a6000", "bf16", 154.8, 1],
  ["mi210", "bf16", 181, 1],
  ["mi300x", "bf16", 1307.4, 1],
  ["mi300x", "fp8", 2614.9, 1],
  ["tpu-v4", "bf16", 275, 1],
  ["tpu-v5e", "bf16", 197, 1],
  ["mi325x", "bf16", 1307.4, 1],
  // AMD prints PFLOP/s, dense and of four digits and more: 2.3069 and 4.6137, 2.5166 and 5.0332, 9.2275 and 10.0663 in 4 bits.
  ["mi350x", "bf16", 2306.9, 1],
  ["mi350x", "fp8", 4613.7, 1],
  ["mi355x", "bf16", 2516.6, 1],
  ["mi355x", "fp8", 5033.2, 1],
  ["mi355x", "fp4", 10_066.3, 1],
  ["h200-nvl", "bf16", 1671, 2],
  ["h200-nvl", "fp8", 3341, 2],
  ["gaudi2", "bf16", 432, 1],
  ["gaudi2", "fp8", 865, 1],
  ["gaudi3", "bf16", 1678, 1],
  ["gaudi3", "fp8", 1678, 1],
  ["tpu-v3", "bf16", 123, 1],
  ["tpu-v5e", "int8", 393, 1],
  ["tpu-v5p", "bf16", 459, 1],
  ["tpu-v5p", "int8", 918, 1],
  ["tpu-v6e", "bf16", 918, 1],
  ["tpu-v6e", "int8", 1836, 1],
  ["tpu-v7", "bf16", 2307, 1],
  ["tpu-v7", "fp8", 4614, 1],
])("%s: %s at %f TFLOP/s, over %i", (name, precision, printed, sparse) => {
  expect(accelerator(name).peak[precision]! / 1e12).toBeCloseTo(printed / sparse, 6);
});

test("parts of a printed whole: an eighth of a board, one of 72, one die or tile of two", () => {
  const peak = (name: string, p: Precision) => accelerator(name).peak[p]! / 1e12;
  // HGX B200 and B300, PFLOP/s of eight: 36 and 72 with sparsity, fp4 72 and 108 dense, fp64 296 and 10 TFLOP/s.
  for (const name of ["b200", "b300"]) {
    expect([peak(name, "bf16"), peak(name, "fp8")]).toEqual([36e3 / 16, 72e3 / 16]);
    expect(peak(name, "fp32")).toBe(600 / 8);
  }
  expect([peak("b200", "fp4"), peak("b300", "fp4")]).toEqual([72e3 / 8, 108e3 / 8]);
  expect([peak("b200", "fp64"), peak("b300", "fp64")]).toEqual([296 / 8, 10 / 8]);
  // NVL72 racks: 360 PFLOP/s with sparsity, fp4 720 and 1080 dense; fp64 2,880 and 100 TFLOP/s.
  for (const name of ["gb200", "gb300"]) expect(peak(name, "bf16")).toBe(360e3 / 144);
  expect([peak("gb200", "fp4"), peak("gb300", "fp4")]).toEqual([720e3 / 72, 1080e3 / 72]);
  expect(peak("gb200", "fp64")).toBe(2880 / 72);
  // The row has three digits of 1.388….
  expect(peak("gb300", "fp64")).toBeCloseTo(100 / 72, 2);
  expect(peak("mi250x", "bf16")).toBe(383 / 2);
  // 256 compute units at 2.2 and 2.4 GHz, 4096 operations a clock; rows have five digits.
  expect(peak("mi350x", "bf16")).toBeCloseTo((256 * 2.2e9 * 4096) / 1e12, 0);
  expect(peak("mi355x", "bf16")).toBeCloseTo((256 * 2.4e9 * 4096) / 1e12, 0);
  // 64 Xe cores, 1.6 GHz, 4096 operations a clock; the row has four digits.
  expect(peak("max1550", "bf16")).toBeCloseTo((64 * 1.6e9 * 4096) / 1e12, 1);
});

/** Memory in GiB, its bandwidth in GB/s, last shared cache in MiB, multiprocessors. */
test.each([
  ["v100-16", 16, 900, 6, 80],
  ["v100-32", 32, 900, 6, 80],
  ["a100-40", 40, 1555, 40, 108],
  ["a100-80", 80, 2039, 40, 108],
  ["a100-pcie-40", 40, 1555, 40, 108],
  ["a100-pcie-80", 80, 1935, 40, 108],
  ["h100", 80, 3350, 50, 132],
  ["h100-pcie", 80, 2000, 50, 114],
  ["h20", 96, 4000, 60, 78],
  // Six memory stacks: torch reports 60 MiB for an H200.
  ["h200", 141, 4800, 60, 132],
  // 7680 bits at 8 Gbit/s; Blackwell tuning guide, section 4.2.2.
  ["b200", 180, 7700, 126, 148],
  ["gb200", 186, 8000, 126, 152],
  ["b300", 270, 8000, 126, 148],
  ["l40s", 48, 864, 96, 142],
  ["l20", 48, 864, 96, 92],
  ["rtx3080ti", 12, 912, 6, 80],
  ["rtx3090", 24, 936, 6, 82],
  ["rtx4090", 24, 1008, 72, 128],
  ["a6000", 48, 768, 6, 84],
  ["mi210", 64, 1638.4, 8, 104],
  ["mi250x", 64, 1638.4, 8, 110],
  ["mi300x", 192, 5300, 256, 304],
  ["max1550", 64, 1638.4, 204, 64],
  ["tpu-v4", 32, 1200, 128, 2],
  ["tpu-v5e", 16, 819, 128, 1],
  ["tpu-v5p", 95, 2765, 128, 2],
  ["mi325x", 256, 6000, 256, 304],
  ["mi350x", 288, 8000, 256, 256],
  ["mi355x", 288, 8000, 256, 256],
  ["h200-nvl", 141, 4800, 60, 132],
  ["gaudi2", 96, 2460, 48, 2],
  ["gaudi3", 128, 3700, 96, 8],
  ["tpu-v3", 32, 900, 32, 2],
  ["tpu-v6e", 32, 1638, 128, 1],
  ["tpu-v7", 192, 7380, 128, 2],
] as const)(
  "%s: %i GiB at %f GB/s, %i MiB of cache, %i units",
  (name, gib, bandwidth, l2, units) => {
    expect(accelerator(name)).toMatchObject({
      memory: gib * 2 ** 30,
      memoryBandwidth: bandwidth * 1e9,
      l2: l2 * 2 ** 20,
      multiprocessors: units,
    });
  },
);

/** GB/s that the vendor prints, how many directions that counts, and the power limit in W. */
test.each([
  ["v100-32", 300, 2, 300],
  ["a100-80", 600, 2, 400],
  ["a100-pcie-40", 600, 2, 250],
  ["a100-pcie-80", 600, 2, 300],
  ["a800-80", 400, 2, 400],
  ["h100", 900, 2, 700],
  ["h100-pcie", 600, 2, 350],
  ["h100-nvl", 600, 2, 400],
  ["h800", 400, 2, 700],
  ["h20", 900, 2, 500],
  ["h200", 900, 2, 700],
  ["b200", 1800, 2, 1000],
  ["gb200", 1800, 2, 1200],
  ["b300", 1800, 2, 1100],
  ["gb300", 1800, 2, 1400],
  ["rtx3090", 112.5, 2, 350],
  ["rtx4090", 0, 1, 450],
  ["a6000", 112.5, 2, 300],
  ["l40s", 0, 1, 350],
  ["mi210", 3 * 100, 2, 300],
  ["mi250x", 8 * 100, 2, 280],
  ["mi300x", 7 * 128, 2, 750],
  ["max1550", 8 * 26.5, 1, 300],
  ["tpu-v4", 6 * 45, 1, 192],
  ["tpu-v5e", 400, 2, 200],
  ["tpu-v5p", 1200, 2, 450],
  ["mi325x", 7 * 128, 2, 1000],
  ["mi350x", 7 * 153.6, 2, 1000],
  ["mi355x", 7 * 153.6, 2, 1400],
  ["h200-nvl", 900, 2, 600],
  ["gaudi2", (21 * 100) / 8, 1, 600],
  ["gaudi3", (21 * 200) / 8, 1, 900],
  ["tpu-v3", 4 * 70, 1, 262],
  ["tpu-v6e", 800, 2, 300],
  ["tpu-v7", 1200, 2, 1000],
] as const)("%s: %f GB/s of scale-up links in %i directions, %i W", (name, printed, ways, tdp) => {
  expect(accelerator(name)).toMatchObject({ scaleUp: (printed / ways) * 1e9, tdp });
});

test("the links of a pod's chips make the all-reduce bandwidth that Google states for it", () => {
  // v4: 4,096 chips, 1.1 PB/s; v5e and v6e: 256 chips, 51.2 and 102.4 TB/s. Google prints two digits of the first.
  expect((4096 * accelerator("tpu-v4").scaleUp) / 1.1e15).toBeCloseTo(1, 1);
  expect(256 * accelerator("tpu-v5e").scaleUp).toBe(51.2e12);
  expect(256 * accelerator("tpu-v6e").scaleUp).toBe(102.4e12);
});

test("a row says of how many boards its idle power is, or that it is an assumption", () => {
  for (const { name, source, idlePower } of accelerators) {
    // Google states the least that it measured of the first two; cores share the power of their machine.
    if (["tpu-v3", "tpu-v4", "cpu-core"].includes(name)) continue;
    const [, boards, low, high] =
      /idle power: median of (\d+) boards in public [a-z-]+ output, (\d+) to (\d+) W/.exec(
        source,
      ) ?? [];
    if (boards === undefined) {
      expect(source).toMatch(/idle power is an assumption|both figures are assumptions/);
      continue;
    }
    expect(Number(boards)).toBeGreaterThan(1);
    const share = source.endsWith("W a package") ? 2 : 1;
    expect(idlePower * share).toBeGreaterThanOrEqual(Number(low));
    expect(idlePower * share).toBeLessThanOrEqual(Number(high));
  }
});
