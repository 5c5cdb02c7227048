import { restoreTokenizer, type Tokenizer } from "../tokenizer.ts";
import { huggingFaceTokenizer } from "./hugging-face.ts";
import {
  type TiktokenEncoding,
  type TiktokenOptions,
  tiktokenEncoding,
  tiktokenTokenizer,
} from "./tiktoken.ts";

/** The tokenizer that `json` describes, whatever its kind: what any tokenizer's `toJSON` gave. */
export async function loadTokenizer(json: unknown): Promise<Tokenizer> {
  const { kind, name, tokenizer, ...rest } = (json ?? {}) as Readonly<Record<string, unknown>>;
  switch (kind) {
    case "hugging-face":
      return huggingFaceTokenizer(tokenizer);
    case "tiktoken-encoding":
      return tiktokenEncoding(name as TiktokenEncoding);
    case "tiktoken":
      return tiktokenTokenizer(rest as unknown as TiktokenOptions);
    default:
      return restoreTokenizer(json);
  }
}
