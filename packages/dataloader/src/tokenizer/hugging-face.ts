/** Any tokenizer that a Hugging Face `tokenizer.json` describes, by Hugging Face's own library. */
import { TriremeError, missingPeer } from "@trireme/core";
import type { Tokenizer } from "../tokenizer.ts";
import { checkedIds } from "./id-check.ts";

type Fields = Readonly<Record<string, unknown>>;

/**
 * The tokenizer of a `tokenizer.json`, parsed. Text is encoded as it is: no beginning or end is put
 * around it (say `endOfDocument` where documents are prepared), but special tokens written out in the
 * text become those tokens, as with the reference. Decoding keeps special tokens and spaces. The
 * vocabulary is the largest id and one, so that ids that a file leaves out have a row too.
 */
export async function huggingFaceTokenizer(json: unknown): Promise<Tokenizer> {
  const fields = checked(json);
  const library = await import("@huggingface/tokenizers").catch(
    missingPeer("@trireme/dataloader/tokenizer", "@huggingface/tokenizers", "0.2.0"),
  );
  let tokenizer: InstanceType<typeof library.Tokenizer>;
  try {
    tokenizer = new library.Tokenizer(fields, {});
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new TriremeError("TOKENIZER", `a tokenizer.json that cannot be used: ${reason}`, {
      cause,
    });
  }
  const ids = new Set<number>(tokenizer.get_vocab(true).values());
  let largest = -1;
  for (const id of ids) largest = Math.max(largest, id);
  if (largest < 0) throw new TriremeError("TOKENIZER", "a tokenizer.json with an empty vocabulary");
  const vocabulary = largest + 1;
  const Ids = vocabulary <= 0x10000 ? Uint16Array : Int32Array;
  return {
    vocabulary,
    encode(text) {
      if (text === "") return new Ids(0);
      return Ids.from(tokenizer.encode(text, { add_special_tokens: false }).ids);
    },
    decode(tokens) {
      const list = checkedIds(tokens, (id) => ids.has(id), vocabulary);
      if (list.length === 0) return "";
      return tokenizer.decode(list, {
        skip_special_tokens: false,
        clean_up_tokenization_spaces: false,
      });
    },
    toJSON: () => ({ kind: "hugging-face", tokenizer: fields }),
  };
}

function checked(json: unknown): Fields {
  const isFields = (value: unknown): value is Fields =>
    typeof value === "object" && value !== null && !Array.isArray(value);
  if (!isFields(json) || !isFields(json["model"]) || !("vocab" in json["model"])) {
    throw new TriremeError(
      "TOKENIZER",
      `no tokenizer.json: it needs an object with "model" and a "vocab" in it; tokenizer_config.json and vocab.json are other files`,
    );
  }
  return json;
}
