import fc from "fast-check";
import { expect, test } from "vitest";
import { splitDocuments } from "@trireme/dataloader";

const documents = (n: number) =>
  Array.from({ length: n }, (_, i) => ({ name: `d${i}`, text: `text ${i}` }));

test("a split is disjoint, complete, in order, and of the size asked for", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 2, max: 300 }),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      fc.maxSafeInteger(),
      (n, share, seed) => {
        const all = documents(n);
        const { train, validation } = splitDocuments(all, { validation: share, seed });
        expect([...train, ...validation].sort((a, b) => all.indexOf(a) - all.indexOf(b))).toEqual(
          all,
        );
        for (const side of [train, validation]) {
          const at = side.map((document) => all.indexOf(document));
          expect(at).toEqual([...at].sort((a, b) => a - b));
        }
        const rounded = Math.min(n - 1, Math.max(1, Math.round(n * share)));
        expect(validation.length).toBe(share === 0 ? 0 : rounded);
      },
    ),
  );
});

const held = (seed: number) =>
  splitDocuments(documents(100), { validation: 0.1, seed })
    .validation.map(({ name }) => name)
    .join();

test("the seed decides what is held out", () => {
  expect(held(1)).toBe(held(1));
  expect(new Set([1, 2, 3, 4].map(held)).size).toBe(4);
});

test("a lone document is cut after the line break nearest to the share", () => {
  const text = "one\ntwo\nthree\nfour\n";
  const { train, validation } = splitDocuments([{ name: "d", text }], { validation: 0.3, seed: 0 });
  expect(train).toEqual([{ name: "d (start)", text: "one\ntwo\nthree\n" }]);
  expect(validation).toEqual([{ name: "d (end)", text: "four\n" }]);
});

test("a lone document in one line is cut between code points", () => {
  const { train, validation } = splitDocuments([{ name: "d", text: "😀😀" }], {
    validation: 0.25,
    seed: 0,
  });
  expect([train[0]!.text, validation[0]!.text]).toEqual(["😀", "😀"]);
});

test("nothing to split, a share outside [0, 1) and a document too short are refused", () => {
  expect(() => splitDocuments([], { validation: 0.1, seed: 0 })).toThrow("no documents to split");
  for (const validation of [1, -0.1, Number.NaN]) {
    expect(() => splitDocuments(documents(3), { validation, seed: 0 })).toThrow("outside [0, 1)");
  }
  expect(() => splitDocuments([{ name: "d", text: "a" }], { validation: 0.1, seed: 0 })).toThrow(
    'document "d" has 1 characters: too few',
  );
});
