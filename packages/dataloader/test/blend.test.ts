import fc from "fast-check";
import { expect, test } from "vitest";
import { blend, exhaustiveBlend } from "@trireme/dataloader";

test("Megatron's vectors", () => {
  const of = (weights: number[], length: number) =>
    [...blend({ weights, length }).sources].join(" ");
  expect(of([0.5, 0.3, 0.2], 10)).toBe("0 1 2 0 1 0 2 0 1 0");
  expect([...blend({ weights: [0.5, 0.3, 0.2], length: 10 }).positions].join(" ")).toBe(
    "0 0 0 1 1 2 1 3 2 4",
  );
  expect(of([1 / 3, 1 / 3, 1 / 3], 9)).toBe("0 1 2 0 1 2 0 1 2");
  expect(of([0.9, 0.1], 12)).toBe("0 1 0 0 0 0 0 0 0 0 0 1");
  expect(of([1, 0], 4)).toBe("0 0 0 0");
  const all = (sizes: number[]) => [...exhaustiveBlend(sizes).sources].join(" ");
  expect(all([3, 2, 1])).toBe("0 1 2 0 1 0");
  expect(all([5, 1])).toBe("0 1 0 0 0 0");
  expect(all([2, 2])).toBe("0 1 0 1");
});

test("no sources, empty ones and one alone are blends as well", () => {
  // Lists of validation sets divide by their total: Megatron-Bridge#2101.
  const of = (sizes: number[]) => [...exhaustiveBlend(sizes).sources];
  expect(of([])).toEqual([]);
  expect(of([0, 0])).toEqual([]);
  expect(of([0, 3, 0])).toEqual([1, 1, 1]);
  expect([...blend({ weights: [0, 2], length: 3, sizes: [0, 3] }).taken]).toEqual([0, 3]);
  expect(blend({ weights: [1, 1], length: 0 }).sources).toHaveLength(0);
});

const weights = fc.array(fc.double({ min: 0.001, max: 1, noNaN: true }), {
  minLength: 1,
  maxLength: 6,
});

test("every prefix keeps each source within the number of sources of its share", () => {
  fc.assert(
    fc.property(weights, fc.integer({ min: 1, max: 400 }), (w, length) => {
      const sum = w.reduce((a, b) => a + b, 0);
      const { sources, positions } = blend({ weights: w, length });
      const taken = w.map(() => 0);
      for (let i = 0; i < length; i++) {
        expect(positions[i]).toBe(taken[sources[i]!]);
        taken[sources[i]!]!++;
        for (const [d, count] of taken.entries()) {
          expect(Math.abs(count - (w[d]! / sum) * (i + 1))).toBeLessThanOrEqual(w.length);
        }
      }
    }),
    { numRuns: 30 },
  );
});

test("an exhaustive blend takes every sample once, in order", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(30), { maxLength: 6 }), (sizes) => {
      const { sources, positions, taken } = exhaustiveBlend(sizes);
      expect([...taken]).toEqual(sizes);
      const seen = sizes.map(() => 0);
      sources.forEach((source, i) => expect(positions[i]).toBe(seen[source]!++));
    }),
  );
});

test("a source that ends is refused by name, repeated, dropped or ends the mixture", () => {
  const base = { weights: [0.001, 0.999], length: 100, sizes: [50, 50] };
  expect(() => blend(base)).toThrow(
    "source 1 has 50 samples, but sample 51 of 100 wants another of it",
  );
  expect(blend({ ...base, exhausted: "repeat" }).positions.at(-1)).toBe(98);
  expect([...blend({ ...base, exhausted: "drop" }).taken]).toEqual([50, 50]);
  expect(blend({ ...base, exhausted: "stop" }).sources.length).toBe(51);
  // All used up before the length is reached: the mixture is what there was.
  expect(blend({ ...base, length: 500, exhausted: "drop" }).sources.length).toBe(100);
});

test("after a source drops out the others keep their proportions", () => {
  const { sources } = blend({
    weights: [1, 2, 3],
    length: 606,
    sizes: [1, 900, 900],
    exhausted: "drop",
  });
  const late = sources.slice(6);
  expect(late.filter((source) => source === 1).length).toBeCloseTo(240, -0.5);
  expect(late.filter((source) => source === 0).length).toBe(0);
});

test("weights and sizes that make no sense are refused", () => {
  for (const bad of [[], [0, 0], [-1, 2], [Number.NaN], [Infinity]]) {
    expect(() => blend({ weights: bad, length: 1 })).toThrow(
      "each must be at least 0, and their sum positive",
    );
  }
  expect(() => blend({ weights: [1], length: -1 })).toThrow("length -1");
  expect(() => blend({ weights: [1], length: 1, sizes: [1, 2] })).toThrow("2 sizes for 1 weights");
  expect(() => exhaustiveBlend([1.5])).toThrow("not counts");
});

test("sizes that are no counts are refused: a source of NaN samples would never end", () => {
  for (const size of [NaN, -3, 1.5]) {
    expect(() => blend({ weights: [1, 1], length: 4, sizes: [size, 9] })).toThrow(
      `source 0 has ${size} samples; use a count, or Infinity`,
    );
  }
  expect(blend({ weights: [1, 1], length: 4, sizes: [Infinity, 2] }).taken).toEqual(
    Float64Array.of(2, 2),
  );
});
