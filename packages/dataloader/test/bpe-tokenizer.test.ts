import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import fc from "fast-check";
import { expect, test } from "vitest";
import { type Tokenizer, byteTokenizer, restoreTokenizer } from "@trireme/dataloader";
import {
  huggingFaceTokenizer,
  loadTokenizer,
  tiktokenEncoding,
  tiktokenTokenizer,
} from "@trireme/dataloader/tokenizer";

interface Trained {
  readonly tokenizer: unknown;
  readonly ids: readonly (readonly number[])[];
  readonly texts: readonly string[];
}
interface Vectors {
  readonly samples: readonly string[];
  readonly "byte-level": Trained;
  readonly "byte-fallback": Trained;
  readonly gpt2: readonly (readonly number[])[];
  readonly cl100k_base: readonly (readonly number[])[];
  readonly o200k_base: readonly (readonly number[])[];
}
const vectors: Vectors = JSON.parse(
  await readFile(new URL("vectors/tokenizers.json", import.meta.url), "utf8"),
);
const gpt2: { bpe_ranks: string; pat_str: string; special_tokens: Record<string, number> } =
  JSON.parse(
    await readFile(createRequire(import.meta.url).resolve("tiktoken/encoders/gpt2.json"), "utf8"),
  );
/** The ranks of GPT-2 as a `.tiktoken` file has them. */
const gpt2Ranks = gpt2.bpe_ranks
  .split("\n")
  .flatMap((line) => {
    const [, first, ...tokens] = line.split(" ");
    return tokens.map((token, i) => `${token} ${Number(first) + i}\n`);
  })
  .join("");

test.each(["byte-level", "byte-fallback"] as const)(
  "a tokenizer.json of %s BPE gives the ids and texts of the Rust tokenizers",
  async (name) => {
    const { tokenizer: json, ids, texts } = vectors[name];
    const tokenizer = await huggingFaceTokenizer(json);
    expect(tokenizer.vocabulary).toBe(name === "byte-level" ? 800 : 900);
    vectors.samples.forEach((sample, i) => {
      expect([sample, [...tokenizer.encode(sample)]]).toEqual([sample, ids[i]]);
      // The library's byte fallback drops a byte order mark that a text starts with.
      const text = name === "byte-fallback" ? texts[i]!.replace(/^\ufeff/, "") : texts[i]!;
      expect([sample, tokenizer.decode(ids[i]!)]).toEqual([sample, text]);
    });
  },
);

test.each(["gpt2", "cl100k_base", "o200k_base"] as const)(
  "%s gives the ids of OpenAI's tiktoken, and its texts back",
  async (name) => {
    const tokenizer = await tiktokenEncoding(name);
    vectors.samples.forEach((sample, i) => {
      expect([sample, [...tokenizer.encode(sample)]]).toEqual([sample, vectors[name][i]]);
      expect(tokenizer.decode(vectors[name][i]!)).toBe(sample);
    });
  },
);

test("GPT-2 is what it is known to be", async () => {
  const tokenizer = await tiktokenEncoding("gpt2");
  expect(tokenizer.vocabulary).toBe(50_257);
  expect([...tokenizer.encode("Hello, world!")]).toEqual([15496, 11, 995, 0]);
  expect(tokenizer.decode([50_256])).toBe("<|endoftext|>");
  // A document that writes the end of a document out has no end of a document in it.
  expect([...tokenizer.encode("<|endoftext|>")]).not.toContain(50_256);
});

test("any text without lone surrogates comes back from byte-level BPE", async () => {
  const tokenizers = [
    await tiktokenEncoding("gpt2"),
    await huggingFaceTokenizer(vectors["byte-level"].tokenizer),
  ];
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (text) => {
      for (const tokenizer of tokenizers) {
        const ids = tokenizer.encode(text);
        expect(tokenizer.decode(ids)).toBe(text);
        expect(ids.every((id) => id < tokenizer.vocabulary)).toBe(true);
      }
    }),
  );
});

test("ranks in the form of a .tiktoken file are the same encoding", async () => {
  const [ranks, known] = [
    await tiktokenTokenizer({ ranks: gpt2Ranks, pattern: gpt2.pat_str }),
    await tiktokenEncoding("gpt2"),
  ];
  expect(ranks.vocabulary).toBe(50_256);
  for (const sample of vectors.samples) expect(ranks.encode(sample)).toEqual(known.encode(sample));
});

test("every kind comes back from what it stores", async () => {
  const kinds: readonly Tokenizer[] = [
    byteTokenizer(),
    await tiktokenEncoding("gpt2"),
    await huggingFaceTokenizer(vectors["byte-level"].tokenizer),
    await tiktokenTokenizer({
      ranks: gpt2Ranks,
      pattern: gpt2.pat_str,
      specialTokens: { "<|end|>": 60_000 },
    }),
  ];
  const text = "Fellow-Citizens, naïve — 日本";
  for (const tokenizer of kinds) {
    const stored: unknown = JSON.parse(JSON.stringify(tokenizer));
    const again = await loadTokenizer(stored);
    expect(again.vocabulary).toBe(tokenizer.vocabulary);
    expect(again.encode(text)).toEqual(tokenizer.encode(text));
    if (tokenizer !== kinds[0])
      expect(() => restoreTokenizer(stored)).toThrow("restored by loadTokenizer");
  }
  expect(kinds[3]!.vocabulary).toBe(60_001);
  expect(() => kinds[3]!.decode([55_000])).toThrow("token 55000 at 0: the vocabulary has none");
});

test("what is no tokenizer is refused by what is wrong with it", async () => {
  await expect(huggingFaceTokenizer({ vocab: {} })).rejects.toThrow(
    'it needs an object with "model"',
  );
  await expect(huggingFaceTokenizer({ model: { vocab: {}, type: "What" } })).rejects.toThrow(
    "a tokenizer.json that cannot be used",
  );
  await expect(tiktokenEncoding("gpt3")).rejects.toThrow(
    'encoding "gpt3" does not come with tiktoken',
  );
  const ranks = (text: string) => tiktokenTokenizer({ ranks: text, pattern: "." });
  await expect(ranks("")).rejects.toThrow("no ranks");
  await expect(ranks("YQ== 0\nYg 1")).rejects.toThrow("line 2 of the ranks is no token in base64");
  await expect(ranks("YQ== 0\nYg== 0")).rejects.toThrow("line 2 of the ranks has rank 0 a second");
  await expect(ranks("YQ== 0\nYQ== 1")).rejects.toThrow("has token YQ== a second time");
  await expect(
    tiktokenTokenizer({ ranks: "YQ== 0", pattern: ".", specialTokens: { e: 0 } }),
  ).rejects.toThrow("special token e has id 0, which is taken");
  await expect(tiktokenTokenizer({ ranks: "YQ== 0", pattern: "(" })).rejects.toThrow(
    "pattern or ranks that tiktoken refuses",
  );
  const few = await tiktokenTokenizer({ ranks: "YQ== 0\nYg== 1", pattern: "." });
  expect(() => few.encode("abc")).toThrow("the ranks have no token for byte 0x63");
  const tokenizer = await tiktokenEncoding("gpt2");
  for (const id of [50_257, -1, 1.5, NaN]) {
    expect(() => tokenizer.decode([0, id])).toThrow(`token ${id} at 1: ids are 0..50256`);
  }
});
