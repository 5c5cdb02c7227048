import { TriremeError } from "@trireme/core";
import { fingerprintValues } from "../fingerprint.ts";
import { checkIds } from "../token-dataset.ts";
import { type TokenType, encodeTokens, tokenWidth } from "../token-type.ts";
import type { Tokenizer } from "../tokenizer.ts";

/** Texts that are tokenised at one go. */
export interface TextBatch {
  readonly texts: readonly string[];
  /** Whether their tokens are wanted; if not, only what tells the texts from others. */
  readonly tokens: boolean;
}

/** How tokens are stored. */
export interface TokenLayout {
  readonly type: TokenType;
  /** A token put behind each text. */
  readonly endOfDocument: number | undefined;
}

/** What became of a batch; empty tokens and lengths where they were not wanted. */
export interface TokenBatch {
  /** Tokens of all texts, as bytes of a file. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Tokens of each text. */
  readonly lengths: Int32Array<ArrayBuffer>;
  /** Bytes of each text as UTF-8. */
  readonly textBytes: Float64Array<ArrayBuffer>;
  /** Fingerprint of each text. */
  readonly prints: readonly string[];
}

/** Tokenises a batch: the same on any thread. */
export function tokenizeBatch(
  tokenizer: Tokenizer,
  { type, endOfDocument }: TokenLayout,
  batch: TextBatch,
): TokenBatch {
  const utf8 = new TextEncoder();
  const textBytes = new Float64Array(batch.texts.length);
  const prints = batch.texts.map((text, i) => {
    const bytes = utf8.encode(text);
    textBytes[i] = bytes.length;
    return fingerprintValues([bytes]);
  });
  if (!batch.tokens) {
    return { bytes: new Uint8Array(0), lengths: new Int32Array(0), textBytes, prints };
  }
  const ends = endOfDocument === undefined ? 0 : 1;
  const parts = batch.texts.map((text, i) => {
    const part = tokenizer.encode(text);
    // Before they are stored: 16 bits would make another id of one that does not fit.
    checkIds(part, tokenizer.vocabulary, (at) => `${at} of document ${i} of a batch`);
    return part;
  });
  const lengths = Int32Array.from(parts, (part) => {
    const length = part.length + ends;
    if (length <= 0x7fffffff) return length;
    throw new TriremeError(
      "PREPARE",
      `a document of ${length} tokens; an index counts them in 31 bits`,
    );
  });
  const width = tokenWidth(type);
  const bytes = new Uint8Array(width * lengths.reduce((sum, length) => sum + length, 0));
  let at = 0;
  const put = (tokens: ArrayLike<number>): void => {
    bytes.set(encodeTokens(type, tokens), at);
    at += width * tokens.length;
  };
  for (const part of parts) {
    put(part);
    if (endOfDocument !== undefined) put([endOfDocument]);
  }
  return { bytes, lengths, textBytes, prints };
}
