import fc from "fast-check";
import { expect, test } from "vitest";
import { createRng, hash32 } from "@trireme/core";

test("the same seed gives the same stream", () => {
  const rng = createRng(42);
  const again = createRng(42);
  for (let i = 0; i < 100; i++) expect(rng.next()).toBe(again.next());
});

test("the first numbers of seed 1 are splitmix32's", () => {
  // Computed from the published algorithm with 32-bit arithmetic in another language.
  const rng = createRng(1);
  expect([rng.next(), rng.next(), rng.next()]).toMatchInlineSnapshot(`
    [
      1580013426,
      350525680,
      3524174333,
    ]
  `);
});

test("integers are in range and every value is reached", () => {
  fc.assert(
    fc.property(fc.integer(), fc.integer({ min: 1, max: 7 }), (seed, n) => {
      const rng = createRng(seed);
      const seen = new Set<number>();
      for (let i = 0; i < 200; i++) seen.add(rng.integer(n));
      expect([...seen].sort((a, b) => a - b)).toEqual(Array.from({ length: n }, (_, i) => i));
    }),
  );
});

test("uniform and normal deviates have the right moments", () => {
  const rng = createRng(7);
  const n = 100_000;
  let sum = 0;
  let normalSum = 0;
  let normalSquares = 0;
  for (let i = 0; i < n; i++) {
    sum += rng.float();
    const x = rng.normal();
    normalSum += x;
    normalSquares += x * x;
  }
  // Five standard errors of each mean.
  expect(Math.abs(sum / n - 0.5)).toBeLessThan(5 * Math.sqrt(1 / 12 / n));
  expect(Math.abs(normalSum / n)).toBeLessThan(5 / Math.sqrt(n));
  expect(Math.abs(normalSquares / n - 1)).toBeLessThan(5 * Math.sqrt(2 / n));
});

test("a fork is another stream, and leaves its parent alone", () => {
  const rng = createRng(3);
  const [a, b] = [rng.fork(0), rng.fork(1)];
  expect(a.next()).not.toBe(b.next());
  expect(rng.next()).toBe(createRng(3).next());
});

test("hash32 depends on every word and on their order", () => {
  expect(hash32(1, 2)).not.toBe(hash32(2, 1));
  expect(hash32(1)).not.toBe(hash32(1, 0));
});

test("seeds and bounds that make no sense are refused", () => {
  expect(() => createRng(1.5)).toThrow("seed 1.5 is not a safe integer");
  expect(() => createRng(1).integer(0)).toThrow("integer(0)");
});
