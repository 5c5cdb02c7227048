import { TriremeError } from "@trireme/core";
import { type Tokenizer, restoreTokenizer } from "../tokenizer.ts";
import { huggingFaceTokenizer } from "./hugging-face.ts";
import { tiktokenEncoding, tiktokenTokenizer } from "./tiktoken.ts";

/** The tokenizer that `json` describes, whatever its kind: what any tokenizer's `toJSON` gave. */
export async function loadTokenizer(json: unknown): Promise<Tokenizer> {
  const fields =
    typeof json === "object" && json !== null ? new Map(Object.entries(json)) : new Map();
  const text = (key: string): string => {
    const value: unknown = fields.get(key);
    if (typeof value === "string") return value;
    throw new TriremeError("TOKENIZER", `a stored tokenizer without a text under "${key}"`);
  };
  switch (fields.get("kind")) {
    case "hugging-face":
      return huggingFaceTokenizer(fields.get("tokenizer"));
    case "tiktoken-encoding":
      return tiktokenEncoding(text("name"));
    case "tiktoken":
      return tiktokenTokenizer({
        ranks: text("ranks"),
        pattern: text("pattern"),
        specialTokens: numbers(fields.get("specialTokens")),
      });
    default:
      return restoreTokenizer(json);
  }
}

function numbers(value: unknown): Readonly<Record<string, number>> {
  const entries = typeof value === "object" && value !== null ? Object.entries(value) : [];
  return Object.fromEntries(
    entries.map(([key, number]): [string, number] => [key, Number(number)]),
  );
}
