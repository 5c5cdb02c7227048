import fc from "fast-check";
import { expect, test } from "vitest";
import { byteTokenizer, characterTokenizer, restoreTokenizer } from "@trireme/dataloader";

const text = fc.string({ unit: "binary", minLength: 1 });

test("characters: ids follow code points, the last id is for the unknown", () => {
  const tokenizer = characterTokenizer(["hello", "world", "\n"]);
  expect(tokenizer.vocabulary).toBe(9);
  expect([...tokenizer.encode("\nhold?")]).toEqual([0, 3, 5, 4, 1, 8]);
  expect(tokenizer.decode([3, 2, 4, 4, 5, 8])).toBe("hello\uFFFD");
});

test("characters: decode inverts encode on every text that was learned from", () => {
  fc.assert(
    fc.property(fc.array(text, { minLength: 1 }), (texts) => {
      const tokenizer = characterTokenizer(texts);
      for (const t of texts) {
        const ids = tokenizer.encode(t);
        expect(ids.length).toBe(Array.from(t).length);
        expect(tokenizer.decode(ids)).toBe(t);
      }
    }),
  );
});

test("characters: a lone surrogate is a character of its own", () => {
  const tokenizer = characterTokenizer(["a\uD800b", "\uDC00"]);
  expect(tokenizer.vocabulary).toBe(5);
  expect(tokenizer.decode(tokenizer.encode("\uD800b"))).toBe("\uD800b");
});

test("bytes: decode inverts encode on every well-formed text", () => {
  const tokenizer = byteTokenizer();
  fc.assert(
    fc.property(text, (t) => {
      expect(tokenizer.decode(tokenizer.encode(t))).toBe(t);
    }),
  );
  expect([...tokenizer.encode("é€")]).toEqual([0xc3, 0xa9, 0xe2, 0x82, 0xac]);
  expect(tokenizer.decode(tokenizer.encode("\uFEFFa"))).toBe("\uFEFFa");
  expect(tokenizer.decode([0xc3])).toBe("\uFFFD");
});

test("a tokenizer restored from stored JSON is the same tokenizer", () => {
  fc.assert(
    fc.property(text, text, (learned, other) => {
      for (const tokenizer of [characterTokenizer([learned]), byteTokenizer()]) {
        const restored = restoreTokenizer(JSON.parse(JSON.stringify(tokenizer)));
        expect(restored.vocabulary).toBe(tokenizer.vocabulary);
        expect(restored.encode(other)).toEqual(tokenizer.encode(other));
      }
    }),
  );
});

test("an id outside the vocabulary is refused with the range", () => {
  const tokenizer = characterTokenizer(["abc"]);
  for (const id of [-1, 4, 0.5]) expect(() => tokenizer.decode([id])).toThrow("ids are 0..3");
  expect(() => byteTokenizer().decode([65, 256])).toThrow(
    "token 256 at 1 is no byte: ids are 0..255",
  );
});

test("an empty corpus and a description that is none are refused", () => {
  expect(() => characterTokenizer([])).toThrow("no text to learn characters from");
  expect(() => characterTokenizer(["", ""])).toThrow("no text to learn characters from");
  expect(() => restoreTokenizer({ kind: "charcter" })).toThrow('did you mean "character"?');
  expect(() => restoreTokenizer(undefined)).toThrow('use "byte" or "character"');
  for (const codePoints of [undefined, [], [98, 97], [97, 97], [-1], [0x110000], ["a"]]) {
    expect(() => restoreTokenizer({ kind: "character", codePoints })).toThrow(
      "ascending, each once",
    );
  }
});
