/** Documents as one stream of token ids, with where each document ends and a fingerprint of it all. */
import { TriremeError } from "@trireme/core";
import type { Document } from "./document.ts";
import { fingerprint } from "./fingerprint.ts";
import type { Tokenizer, Tokens } from "./tokenizer.ts";

/** Documents laid end to end, with nothing between them. */
export interface TokenDataset {
  readonly tokens: Uint16Array | Int32Array;
  /** Where each document ends in `tokens` (exclusive), ascending; the last is `tokens.length`. */
  readonly documents: Float64Array | Uint32Array;
  /** Every token is in [0, vocabulary). */
  readonly vocabulary: number;
  /** 16 hex digits over the tokens, the ends and the vocabulary: equal data, equal print. */
  readonly fingerprint: string;
}

/** Tokenises documents in the order given. Empty ones stay, as two equal ends. */
export function tokenize(documents: Iterable<Document>, tokenizer: Tokenizer): TokenDataset {
  const parts: Tokens[] = [];
  let length = 0;
  for (const { text } of documents) {
    const part = tokenizer.encode(text);
    parts.push(part);
    length += part.length;
  }
  const tokens = tokenizer.vocabulary <= 0x10000 ? new Uint16Array(length) : new Int32Array(length);
  const ends = new Float64Array(parts.length);
  let end = 0;
  parts.forEach((part, i) => {
    // Before they are stored: 16 bits would make another id of one that does not fit.
    checkIds(part, tokenizer.vocabulary, (at) => `${at} of document ${i}`);
    tokens.set(part, end);
    end += part.length;
    ends[i] = end;
  });
  return tokenDataset(tokens, ends, tokenizer.vocabulary);
}

/** A dataset of tokens that exist already. Checks every token against the vocabulary, and the ends. */
export function tokenDataset(
  tokens: Uint16Array | Int32Array,
  documents: Float64Array | Uint32Array,
  vocabulary: number,
): TokenDataset {
  if (!Number.isSafeInteger(vocabulary) || vocabulary < 1) {
    throw new TriremeError("DATASET", `vocabulary ${vocabulary} is not a positive integer`);
  }
  checkIds(tokens, vocabulary, String);
  let before = 0;
  documents.forEach((end, i) => {
    if (!Number.isSafeInteger(end) || end < before) {
      throw new TriremeError(
        "DATASET",
        `document ${i} ends at ${end}, before its start at ${before}`,
      );
    }
    before = end;
  });
  if (before !== tokens.length) {
    throw new TriremeError(
      "DATASET",
      `the documents end at ${before}, the tokens at ${tokens.length}`,
    );
  }
  return { tokens, documents, vocabulary, fingerprint: fingerprint(tokens, documents, vocabulary) };
}

/** Throws at the first token that is no id of the vocabulary; `place` says where it stands. */
export function checkIds(
  tokens: ArrayLike<number>,
  vocabulary: number,
  place: (at: number) => string,
): void {
  for (let i = 0; i < tokens.length; i++) {
    const token = tokens[i]!;
    if (token >= 0 && token < vocabulary && Math.floor(token) === token) continue;
    throw new TriremeError(
      "DATASET",
      `token ${token} at ${place(i)} is outside the vocabulary: ids are 0..${vocabulary - 1}`,
    );
  }
}
