import fc from "fast-check";
import { expect, test } from "vitest";
import {
  datasetSource,
  epochsFor,
  sampleIndex,
  shuffleDocuments,
  tokenDataset,
} from "@trireme/dataloader";

const sizes = [5, 3, 7, 2];
const rows = (options: Parameters<typeof sampleIndex>[0]): string => {
  const { places, offsets } = sampleIndex(options);
  return Array.from(places, (place, i) => `(${place},${offsets[i]})`).join(" ");
};

test("Megatron's vectors", () => {
  const order = [0, 1, 2, 3];
  expect(rows({ sizes, order, sequence: 4 })).toBe("(0,0) (0,4) (2,0) (2,4) (3,1)");
  expect(rows({ sizes, order, sequence: 5 })).toBe("(0,0) (1,0) (2,2) (3,0)");
  expect(rows({ sizes, order, sequence: 5, keepPartial: true })).toBe(
    "(0,0) (1,0) (2,2) (3,0) (3,1)",
  );
  const two = [2, 0, 3, 1, 1, 2, 0, 3];
  expect(rows({ sizes, order: two, sequence: 8 })).toBe("(0,0) (1,1) (3,2) (5,4) (7,0)");
});

test("a sample is what a plain walk over the documents gives", () => {
  fc.assert(
    fc.property(
      fc.array(fc.nat(9), { minLength: 1, maxLength: 12 }),
      fc.integer({ min: 1, max: 10 }),
      fc.boolean(),
      (some, sequence, keepPartial) => {
        const order = some.map((_, i) => (i * 7 + 3) % some.length);
        const stream = order.flatMap((document, place) =>
          Array.from({ length: some[document]! }, (_, offset) => `(${place},${offset})`),
        );
        const { samples, places, offsets } = sampleIndex({
          sizes: some,
          order,
          sequence,
          keepPartial,
        });
        const full = Math.floor(Math.max(0, stream.length - 1) / sequence);
        const partial = keepPartial && Math.max(0, stream.length - 1) % sequence > 0;
        expect(samples).toBe(full + (partial ? 1 : 0));
        const starts = Array.from(places, (place, i) => `(${place},${offsets[i]})`).slice(
          0,
          samples,
        );
        expect(starts).toEqual(starts.map((_, k) => stream[k * sequence]));
      },
    ),
  );
});

test("counts beyond 2^31 and 2^24 are exact", () => {
  // Where a 32-bit or single-precision count breaks: Megatron-LM pull request 598, and helpers.cpp's ceil.
  const big = sampleIndex({ sizes: [2 ** 40, 2 ** 40], order: [0, 1], sequence: 2 ** 38 });
  expect([...big.places]).toEqual([0, 0, 0, 0, 1, 1, 1, 1]);
  expect(big.offsets[7]).toBe(3 * 2 ** 38);
  const n = 2 ** 25 + 2;
  expect(epochsFor(n, 1, n - 1)).toBe(1);
  expect(epochsFor(n, 1, n)).toBe(2);
});

test("epochs are the fewest that suffice", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 500 }),
      fc.integer({ min: 1, max: 50 }),
      fc.nat(1000),
      (tokens, sequence, samples) => {
        const epochs = epochsFor(tokens, sequence, samples);
        const given = (e: number) => Math.floor(Math.max(0, e * tokens - 1) / sequence);
        expect(given(epochs)).toBeGreaterThanOrEqual(samples);
        expect(epochs === 0 || given(epochs - 1) < samples).toBe(true);
      },
    ),
  );
});

test("sizes and documents that are none are refused", () => {
  expect(() => sampleIndex({ sizes, order: [4], sequence: 1 })).toThrow(
    "document 4 at place 0 of the order has size undefined",
  );
  expect(() => sampleIndex({ sizes: [-1], order: [0], sequence: 1 })).toThrow("size -1");
  expect(() => sampleIndex({ sizes, order: [0], sequence: 0 })).toThrow("sequence 0");
  expect(() => epochsFor(0, 1, 1)).toThrow("an epoch of 0 tokens");
  expect(() => epochsFor(5, 2 ** 30, 2 ** 30)).toThrow("above 2^53 tokens");
});

test("shuffled documents are whole, each once, in an order of the key's", () => {
  fc.assert(
    fc.property(
      fc.array(fc.nat(6), { minLength: 2, maxLength: 20 }),
      fc.maxSafeInteger(),
      fc.nat(),
      fc.nat(),
      (some, key, a, b) => {
        const ends = Float64Array.from(some);
        for (let i = 1; i < ends.length; i++) ends[i]! += ends[i - 1]!;
        // Token = document · 10 + offset, so that each names its place.
        const tokens = Int32Array.from(
          some.flatMap((size, d) => Array.from({ length: size }, (_, o) => d * 10 + o)),
        );
        const source = datasetSource(tokenDataset(tokens, ends, 1000));
        const shuffled = shuffleDocuments(source, ends, key);
        const whole = new Int32Array(shuffled.length);
        shuffled.read(0, whole);
        expect([...whole].sort((x, y) => x - y)).toEqual([...tokens]);
        // A token that does not begin a document follows its predecessor.
        whole.forEach((token, i) =>
          expect(token % 10 === 0 || whole[i - 1] === token - 1).toBe(true),
        );
        const start = a % (whole.length + 1);
        const into = new Int32Array(b % (whole.length - start + 1));
        shuffled.read(start, into);
        expect(into).toEqual(whole.slice(start, start + into.length));
      },
    ),
  );
});

test("epochs are counted of counts alone", () => {
  expect(() => epochsFor(10, 0, 5)).toThrow("sequence 0 is not a positive integer");
  for (const samples of [-5, NaN, 0.5])
    expect(() => epochsFor(10, 2, samples)).toThrow(`${samples} samples; use a count`);
});
