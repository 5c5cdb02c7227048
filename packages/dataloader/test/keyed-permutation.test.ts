import fc from "fast-check";
import { expect, test } from "vitest";
import { keyedPermutation } from "@trireme/dataloader";

test("every position maps to an item of its own", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 3000 }), fc.maxSafeInteger(), (n, key) => {
      const at = keyedPermutation(n, key);
      const seen = new Set(Array.from({ length: n }, (_, i) => at(i)));
      expect(seen.size).toBe(n);
      expect(Math.min(...seen)).toBe(0);
      expect(Math.max(...seen)).toBe(n - 1);
    }),
  );
});

test("is a bijection on a large domain that is no power of two", () => {
  // The size Grain's own bijection test uses, and one more.
  for (const n of [46_204, 46_205]) {
    const at = keyedPermutation(n, 17);
    const seen = new Uint8Array(n);
    for (let i = 0; i < n; i++) seen[at(i)]!++;
    expect(seen.every((count) => count === 1)).toBe(true);
  }
});

test("stays in range, exact and without repeats in domains up to 2^53", () => {
  for (const n of [2 ** 31, 2 ** 32 + 1, 2 ** 53 - 1, 2 ** 53]) {
    const at = keyedPermutation(n, 3);
    const ends = [0, 1, 2, n - 2, n - 1, Math.floor(n / 2)].filter((i) => i < n);
    const items = ends.map((i) => at(i));
    for (const item of items) expect(Number.isInteger(item) && item >= 0 && item < n).toBe(true);
    expect(new Set(items).size).toBe(ends.length);
  }
  const at = keyedPermutation(2 ** 53, 3);
  const many = new Set(Array.from({ length: 20_000 }, (_, i) => at(i)));
  expect(many.size).toBe(20_000);
});

const order = (key: number): string => {
  const at = keyedPermutation(100, key);
  return Array.from({ length: 100 }, (_, i) => at(i)).join();
};

test("another key gives another order, also where keys differ above 32 bits only", () => {
  const orders = [0, 1, 2, -1, 2 ** 32, 2 ** 33, 2 ** 52].map(order);
  expect(new Set(orders).size).toBe(orders.length);
});

test("each item is equally likely at each position over keys", () => {
  for (const n of [5, 16, 23]) {
    const keys = 4000;
    const counts = new Float64Array(n * n);
    for (let key = 0; key < keys; key++) {
      const at = keyedPermutation(n, key);
      for (let i = 0; i < n; i++) counts[i * n + at(i)]!++;
    }
    let chiSquare = 0;
    for (const count of counts) chiSquare += (count - keys / n) ** 2 / (keys / n);
    // (n-1)² degrees of freedom: mean (n-1)², standard deviation √2 (n-1); six of them allowed.
    expect(chiSquare).toBeLessThan((n - 1) ** 2 + 6 * Math.SQRT2 * (n - 1));
  }
});

test("neighbouring positions do not stay neighbours", () => {
  const n = 100_003;
  const at = keyedPermutation(n, 1);
  let sum = 0;
  for (let i = 0; i < 10_000; i++) sum += Math.abs(at(i) - at(i + 1));
  // Two independent uniform items are n/3 apart on average, with a standard error of about 0.0024 n here.
  expect(sum / 10_000 / n).toBeCloseTo(1 / 3, 1);
});

test("refuses sizes and positions outside its domain", () => {
  for (const n of [0, -1, 1.5, 2 ** 53 + 2, Number.NaN]) {
    expect(() => keyedPermutation(n, 0)).toThrow("integer in 1..2^53");
  }
  expect(() => keyedPermutation(10, 0.5)).toThrow("not a safe integer");
  const at = keyedPermutation(10, 0);
  for (const i of [-1, 10, 0.5])
    expect(() => at(i)).toThrow("outside the permutation of 10 items, 0..9");
});
