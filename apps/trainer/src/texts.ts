/** The text of a run: read, split by document, made into tokens. */
import { resolve } from "node:path";
import {
  type TokenDataset,
  type Tokenizer,
  byteTokenizer,
  characterTokenizer,
  splitDocuments,
  tokenize,
} from "@trireme/dataloader";
import { readTextDocuments } from "@trireme/dataloader/node";
import type { ResolvedData } from "@trireme/run";

/** Text as tokens. */
export interface Texts {
  readonly tokenizer: Tokenizer;
  readonly train: TokenDataset;
  /** Documents that no step sees; undefined where the run keeps none. */
  readonly validation: TokenDataset | undefined;
  readonly documents: { readonly train: number; readonly validation: number };
}

/**
 * Reads the text of a run; a relative path is relative to `directory`. The vocabulary of a character
 * tokenizer is that of the training documents: what only validation has is its unknown token.
 * @throws TriremeError that names the path, when there is no text.
 */
export async function readTexts(data: ResolvedData, directory: string): Promise<Texts> {
  const all = await readTextDocuments(resolve(directory, data.path));
  const { train, validation } =
    data.validation === 0
      ? { train: all, validation: [] }
      : splitDocuments(all, { validation: data.validation, seed: data.seed });
  const tokenizer =
    data.tokenizer === "byte" ? byteTokenizer() : characterTokenizer(train.map((d) => d.text));
  return {
    tokenizer,
    train: tokenize(train, tokenizer),
    validation: validation.length === 0 ? undefined : tokenize(validation, tokenizer),
    documents: { train: train.length, validation: validation.length },
  };
}
