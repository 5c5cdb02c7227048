/**
 * One token per Unicode code point, ids in code point order, as nanoGPT's character-level set-up
 * has them; one id more, the last, stands for every code point that the texts did not have.
 */
import { TriremeError } from "@trireme/core";
import type { Tokenizer } from "./tokenizer.ts";

const limit = 0x110000;

/** Learns the code points of `documents`; at least one is needed. */
export function characterTokenizer(documents: Iterable<string>): Tokenizer {
  const seen = new Uint8Array(limit);
  for (const text of documents) forEachCodePoint(text, (point) => void (seen[point] = 1));
  const codePoints: number[] = [];
  for (let point = 0; point < limit; point++) if (seen[point] === 1) codePoints.push(point);
  if (codePoints.length === 0) {
    throw new TriremeError(
      "TOKENIZER",
      "no text to learn characters from: every document is empty",
    );
  }
  return characterTokenizerOf(codePoints);
}

/** The tokenizer of stored code points: ascending, each once. */
export function characterTokenizerOf(stored: unknown): Tokenizer {
  const codePoints = checked(stored);
  const unknown = codePoints.length;
  const vocabulary = unknown + 1;
  const ids = new Int32Array(codePoints.at(-1)! + 1).fill(unknown);
  codePoints.forEach((point, id) => void (ids[point] = id));
  const characters = [...codePoints.map((point) => String.fromCodePoint(point)), "\uFFFD"];
  const Ids = vocabulary <= 0x10000 ? Uint16Array : Int32Array;
  return {
    vocabulary,
    encode(text) {
      // Long enough where no pair of surrogates is one code point; cut to what was used.
      const tokens = new Ids(text.length);
      let length = 0;
      forEachCodePoint(text, (point) => {
        tokens[length++] = point < ids.length ? ids[point]! : unknown;
      });
      return length === tokens.length ? tokens : tokens.slice(0, length);
    },
    decode(tokens) {
      let text = "";
      for (const id of tokens) {
        const character = characters[id];
        if (character === undefined) {
          throw new TriremeError(
            "TOKEN",
            `token ${id} is outside the vocabulary: ids are 0..${unknown}`,
          );
        }
        text += character;
      }
      return text;
    },
    toJSON: () => ({ kind: "character", codePoints }),
  };
}

function checked(stored: unknown): readonly number[] {
  const ok =
    Array.isArray(stored) &&
    stored.length > 0 &&
    stored.every(
      (point, i) =>
        Number.isInteger(point) &&
        point >= 0 &&
        point < limit &&
        (i === 0 || point > stored[i - 1]),
    );
  if (!ok) {
    throw new TriremeError(
      "TOKENIZER",
      "a character tokenizer needs codePoints: Unicode code points, ascending, each once, at least one",
    );
  }
  return stored as readonly number[];
}

/** Calls `visit` with each code point; a lone surrogate counts as one. */
function forEachCodePoint(text: string, visit: (point: number) => void): void {
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit >= 0xd800 && unit < 0xdc00) {
      const next = text.charCodeAt(i + 1);
      if (next >= 0xdc00 && next < 0xe000) {
        visit((unit - 0xd800) * 0x400 + next - 0xdc00 + 0x10000);
        i++;
        continue;
      }
    }
    visit(unit);
  }
}
