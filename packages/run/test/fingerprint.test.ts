import { defineRun, fingerprint } from "@trireme/run";
import fc from "fast-check";
import { expect, it } from "vitest";
import { smallRun } from "./small-run.ts";

it("is the same on every machine", () => {
  expect(fingerprint({ b: [1, "x"], a: null })).toBe(
    fingerprint({ a: null, b: [1, "x"], c: undefined }),
  );
  // Fixed, so that a change of the hash, which would orphan every stored fingerprint, is seen.
  expect(fingerprint({ a: 1 })).toBe("106343fea31643dcfadcf975233b5a7d");
});

it("differs where the data differ", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
      const [x, y] = [
        JSON.parse(JSON.stringify(a)) as unknown,
        JSON.parse(JSON.stringify(b)) as unknown,
      ];
      const equal = JSON.stringify(sorted(x)) === JSON.stringify(sorted(y));
      expect(fingerprint(x) === fingerprint(y)).toBe(equal);
    }),
  );
});

it("does not change with what has no bearing on the steps", () => {
  const first = defineRun(smallRun).fingerprint;
  const described = {
    ...smallRun,
    name: "other",
    checkpoint: { every: 3 },
    evaluate: { batches: 9 },
  };
  expect(defineRun(described).fingerprint).toBe(first);
  expect(defineRun({ ...smallRun, seed: 1 }).fingerprint).not.toBe(first);
  expect(defineRun({ ...smallRun, steps: 11 }).fingerprint).not.toBe(first);
});

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return { keys: entries.map(([key, v]) => [key, sorted(v)]) };
}
