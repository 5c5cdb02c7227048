import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import {
  byteTokenizer,
  characterTokenizer,
  tokenDataset,
  tokenize,
  type Tokenizer,
} from "@trireme/dataloader";
import { prepareTokens } from "@trireme/dataloader/node";

const documents = [
  { name: "a", text: "abc" },
  { name: "b", text: "" },
  { name: "c", text: "de" },
];

test("documents lie end to end, an empty one too", () => {
  const dataset = tokenize(documents, byteTokenizer());
  expect([...dataset.tokens]).toEqual([97, 98, 99, 100, 101]);
  expect([...dataset.documents]).toEqual([3, 3, 5]);
  expect(dataset.vocabulary).toBe(256);
});

test("the fingerprint tells apart tokens, their order, documents and vocabulary, not their width", () => {
  const prints = [
    tokenDataset(Uint16Array.of(1, 2, 3), Float64Array.of(3), 10),
    tokenDataset(Uint16Array.of(1, 3, 2), Float64Array.of(3), 10),
    tokenDataset(Uint16Array.of(1, 2, 3), Float64Array.of(1, 3), 10),
    tokenDataset(Uint16Array.of(1, 2, 3), Float64Array.of(3), 11),
    tokenDataset(Uint16Array.of(1, 2, 3, 0), Float64Array.of(4), 10),
    tokenDataset(new Uint16Array(0), new Float64Array(0), 10),
  ].map(({ fingerprint }) => fingerprint);
  expect(new Set(prints).size).toBe(prints.length);
  for (const print of prints) expect(print).toMatch(/^[0-9a-f]{16}$/);
  const wide = tokenDataset(Int32Array.of(1, 2, 3), Uint32Array.of(3), 10);
  expect(wide.fingerprint).toBe(prints[0]);
});

test("a vocabulary beyond 16 bits gets 32-bit tokens", () => {
  const points = Array.from({ length: 70_000 }, (_, i) =>
    String.fromCodePoint(i + (i < 0xd800 ? 0 : 0x800)),
  );
  const text = points.join("");
  const dataset = tokenize([{ name: "all", text }], characterTokenizer([text]));
  expect(dataset.tokens).toBeInstanceOf(Int32Array);
  expect(dataset.tokens.at(-1)).toBe(69_999);
});

const make = (tokens: number[], ends: number[], vocabulary = 5) =>
  tokenDataset(Int32Array.from(tokens), Float64Array.from(ends), vocabulary);

test("tokens outside the vocabulary and ends that do not fit are refused with their place", () => {
  expect(() => make([1, 5], [2])).toThrow("token 5 at 1 is outside the vocabulary: ids are 0..4");
  expect(() => make([-1], [1])).toThrow("token -1 at 0");
  expect(() => make([1, 2], [2, 1])).toThrow("document 1 ends at 1, before its start at 2");
  expect(() => make([1, 2], [1])).toThrow("the documents end at 1, the tokens at 2");
  expect(() => make([], [], 0)).toThrow("vocabulary 0 is not a positive integer");
});

test("an id that its tokenizer should not give is refused, not stored as another", async () => {
  const strange: Tokenizer = {
    ...byteTokenizer(),
    encode: () => Int32Array.of(1, 65_536 + 7),
  };
  const texts = [{ name: "a", text: "ab" }];
  expect(() => tokenize(texts, strange)).toThrow(
    "token 65543 at 1 of document 0 is outside the vocabulary: ids are 0..255",
  );
  const directory = await mkdtemp(join(tmpdir(), "trireme-strange-"));
  try {
    const prefix = join(directory, "tokens");
    await expect(
      prepareTokens({ documents: texts, tokenizer: strange, prefix, workers: 0 }),
    ).rejects.toThrow("token 65543 at 1 of document 0 of a batch");
  } finally {
    await rm(directory, { recursive: true });
  }
});
