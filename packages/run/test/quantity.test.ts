import { parseQuantity } from "@trireme/run";
import { expect, it } from "vitest";

it.each([
  ["80 GiB", "size", 80 * 2 ** 30],
  ["80GB", "size", 80e9],
  ["1.5 kB", "size", 1500],
  ["400 Gbit/s", "bandwidth", 50e9],
  ["400 Gbps", "bandwidth", 50e9],
  ["300 GB/s", "bandwidth", 300e9],
  ["312 TFLOP/s", "arithmetic", 312e12],
  ["312 TFLOPS", "arithmetic", 312e12],
  ["5 us", "time", 5e-6],
  ["5 µs", "time", 5e-6],
  ["2 min", "time", 120],
  ["1e3 s", "time", 1000],
] as const)("%s is a %s in SI", (text, dimension, value) => {
  // One rounding of the product.
  expect(parseQuantity(text, dimension)! / value).toBeCloseTo(1, 14);
});

it.each([
  ["80", "size"],
  ["80 GB/s", "size"],
  ["80 GB", "bandwidth"],
  ["-1 GB", "size"],
  ["GB", "size"],
  ["1 XB", "size"],
  ["1 toString", "time"],
  ["1 constructorB", "size"],
  ["", "time"],
] as const)("%j is no %s", (text, dimension) => {
  expect(parseQuantity(text, dimension)).toBeUndefined();
});
