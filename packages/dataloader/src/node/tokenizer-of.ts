import { restoreTokenizer, type Tokenizer } from "../tokenizer.ts";

/** The tokenizer that `json` describes; the libraries of BPE are loaded only where it needs them. */
export async function tokenizerOf(json: unknown): Promise<Tokenizer> {
  const { kind } = (json ?? {}) as { kind?: unknown };
  if (kind === "byte" || kind === "character") return restoreTokenizer(json);
  const { loadTokenizer } = await import("../tokenizer/index.ts");
  return loadTokenizer(json);
}
