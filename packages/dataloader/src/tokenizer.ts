/** What turns text into token ids and back, and how it is stored in a checkpoint and restored. */
import { TriremeError, nearestName } from "@trireme/core";
import { byteTokenizer } from "./byte-tokenizer.ts";
import { characterTokenizerOf } from "./character-tokenizer.ts";

/** Token ids: 16 bits where the vocabulary fits, else 32. */
export type Tokens = Uint16Array<ArrayBuffer> | Int32Array<ArrayBuffer>;

/** Text to token ids and back. */
export interface Tokenizer {
  /** Number of distinct ids: every id is in [0, vocabulary). */
  readonly vocabulary: number;
  encode(text: string): Tokens;
  /** The text of some ids; an id outside the vocabulary is refused. */
  decode(tokens: Iterable<number>): string;
  /** Plain data that `restoreTokenizer` turns back into this tokenizer. */
  toJSON(): unknown;
}

/** Kinds that lean on a library and so take a promise. */
const elsewhere: ReadonlySet<unknown> = new Set(["hugging-face", "tiktoken", "tiktoken-encoding"]);

/** The tokenizer that `json` (what `toJSON` gave) describes. */
export function restoreTokenizer(json: unknown): Tokenizer {
  const { kind, codePoints } = (json ?? {}) as { kind?: unknown; codePoints?: unknown };
  switch (kind) {
    case "byte":
      return byteTokenizer();
    case "character":
      return characterTokenizerOf(codePoints);
    default: {
      if (elsewhere.has(kind)) {
        throw new TriremeError(
          "TOKENIZER",
          `a tokenizer of kind "${String(kind)}" is restored by loadTokenizer of @trireme/dataloader/tokenizer`,
        );
      }
      const near = typeof kind === "string" ? nearestName(kind, ["byte", "character"]) : undefined;
      throw new TriremeError(
        "TOKENIZER",
        `tokenizer kind ${JSON.stringify(kind)} is not known; ` +
          (near === undefined ? `use "byte" or "character"` : `did you mean "${near}"?`),
      );
    }
  }
}
