/** The tokenizer without a vocabulary to learn: a token is a byte of UTF-8. */
import { TriremeError } from "@trireme/core";
import type { Tokenizer } from "./tokenizer.ts";

/**
 * Bytes of UTF-8 as tokens, 256 of them. Bytes that are no UTF-8, as a model may well write them,
 * decode to U+FFFD; a lone surrogate encodes as U+FFFD, as it has no UTF-8.
 */
export function byteTokenizer(): Tokenizer {
  const encoder = new TextEncoder();
  return {
    vocabulary: 256,
    encode: (text) => new Uint16Array(encoder.encode(text)),
    decode(tokens) {
      const ids = Float64Array.from(tokens);
      const strange = ids.findIndex((id) => !(Number.isInteger(id) && id >= 0 && id < 256));
      if (strange !== -1) {
        throw new TriremeError(
          "TOKEN",
          `token ${ids[strange]} at ${strange} is no byte: ids are 0..255`,
        );
      }
      // A byte order mark in the text is text: keep it.
      return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(ids));
    },
    toJSON: () => ({ kind: "byte" }),
  };
}
