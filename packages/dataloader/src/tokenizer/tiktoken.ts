/**
 * Byte pair encoding from ranks, by the WebAssembly build of OpenAI's tiktoken: the encodings that its
 * package carries, or the ranks of any `.tiktoken` file (Llama 3, Qwen) with their pattern.
 */
import { TriremeError, missingPeer } from "@trireme/core";
import type { Tokenizer } from "../tokenizer.ts";
import { checkedIds } from "./id-check.ts";

/** An encoding in its parts. */
export interface TiktokenOptions {
  /** A `.tiktoken` file: on each line a token in base64, a space and its rank, which is its id. */
  readonly ranks: string;
  /** The regular expression that cuts text into words before pairs are merged. */
  readonly pattern: string;
  /** Ids of tokens that stand for no text, such as `<|endoftext|>`. */
  readonly specialTokens?: Readonly<Record<string, number>>;
}

/**
 * An encoding that comes with the library: "gpt2", "r50k_base", "p50k_base", "cl100k_base" or
 * "o200k_base".
 */
export async function tiktokenEncoding(name: string): Promise<Tokenizer> {
  // The names are spelt out so that bundlers see what is imported.
  const loaders: Readonly<Record<string, () => Promise<{ readonly default: unknown }>>> = {
    gpt2: () => import("tiktoken/encoders/gpt2"),
    r50k_base: () => import("tiktoken/encoders/r50k_base"),
    p50k_base: () => import("tiktoken/encoders/p50k_base"),
    cl100k_base: () => import("tiktoken/encoders/cl100k_base"),
    o200k_base: () => import("tiktoken/encoders/o200k_base"),
  };
  const load = Object.hasOwn(loaders, name) ? loaders[name] : undefined;
  if (load === undefined) {
    throw new TriremeError(
      "TOKENIZER",
      `encoding ${JSON.stringify(name)} does not come with tiktoken; it has ${Object.keys(loaders).join(", ")}`,
    );
  }
  const { default: found } = await load().catch(missing);
  if (!isEncoder(found))
    throw new TriremeError(
      "TOKENIZER",
      `tiktoken's ${name} is not in the form that is known; use tiktoken 1.0`,
    );
  return bpeTokenizer(unpacked(found.bpe_ranks), found.pat_str, found.special_tokens, {
    kind: "tiktoken-encoding",
    name,
  });
}

/** The tokenizer of ranks. Special tokens in a text are text: they come from documents' ends alone. */
export async function tiktokenTokenizer(options: TiktokenOptions): Promise<Tokenizer> {
  const { ranks, pattern, specialTokens = {} } = options;
  const json = { kind: "tiktoken", ranks, pattern, specialTokens };
  return bpeTokenizer(parsed(ranks), pattern, specialTokens, json);
}

const missing = missingPeer("@trireme/dataloader/tokenizer", "tiktoken", "1.0.22");

/** What the library's package has of an encoding. */
interface Encoder {
  readonly bpe_ranks: string;
  readonly pat_str: string;
  readonly special_tokens: Readonly<Record<string, number>>;
}

function isEncoder(value: unknown): value is Encoder {
  if (typeof value !== "object" || value === null) return false;
  return "bpe_ranks" in value && "pat_str" in value && "special_tokens" in value;
}

/** Tokens in base64 by their id. */
type Ranks = ReadonlyMap<number, string>;

async function bpeTokenizer(
  ranks: Ranks,
  pattern: string,
  special: Readonly<Record<string, number>>,
  json: unknown,
): Promise<Tokenizer> {
  const { Tiktoken } = await import("tiktoken/lite").catch(missing);
  const known = new Set(ranks.keys());
  for (const [token, id] of Object.entries(special)) {
    if (!Number.isInteger(id) || id < 0 || known.has(id)) {
      throw new TriremeError(
        "TOKENIZER",
        `special token ${token} has id ${id}, which is taken or no id`,
      );
    }
    known.add(id);
  }
  let encoding: InstanceType<typeof Tiktoken>;
  try {
    encoding = new Tiktoken(packed(ranks), { ...special }, pattern);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new TriremeError("TOKENIZER", `pattern or ranks that tiktoken refuses: ${reason}`, {
      cause,
    });
  }
  let vocabulary = 0;
  for (const id of known) vocabulary = Math.max(vocabulary, id + 1);
  const Ids = vocabulary <= 0x10000 ? Uint16Array : Int32Array;
  return {
    vocabulary,
    encode(text) {
      try {
        return new Ids(encoding.encode_ordinary(text));
      } catch (cause) {
        // The library stops without a word at a byte that is no token.
        const reason =
          byteWithoutRank(ranks, text) ?? (cause instanceof Error ? cause.message : "");
        throw new TriremeError("TOKENIZER", `a text that cannot be encoded: ${reason}`, { cause });
      }
    },
    decode(tokens) {
      const ids = checkedIds(tokens, (id) => known.has(id), vocabulary);
      const bytes = encoding.decode(Uint32Array.from(ids));
      // A token may end within a character, and a byte order mark in the text is text.
      return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
    },
    toJSON: () => json,
  };
}

/** Ids of a `.tiktoken` file, each token and each rank once. */
function parsed(text: string): Ranks {
  const ranks = new Map<number, string>();
  const tokens = new Set<string>();
  text.split("\n").forEach((line, i) => {
    const trimmed = line.trim();
    if (trimmed === "") return;
    const match = /^([A-Za-z0-9+/]+={0,2}) (\d+)$/.exec(trimmed);
    const [, token = "", digits] = match ?? [];
    const rank = Number(digits);
    const reason =
      match === null || token.length % 4 !== 0
        ? "is no token in base64, a space and a rank"
        : rank > 0x7fffffff
          ? `has rank ${rank}, beyond 2^31-1`
          : ranks.has(rank)
            ? `has rank ${rank} a second time`
            : tokens.has(token)
              ? `has token ${token} a second time`
              : undefined;
    if (reason !== undefined)
      throw new TriremeError("TOKENIZER", `line ${i + 1} of the ranks ${reason}`);
    ranks.set(rank, token);
    tokens.add(token);
  });
  if (ranks.size === 0) throw new TriremeError("TOKENIZER", "no ranks: the text has no line");
  return ranks;
}

/** The library's own form: lines of "!", a first id, and tokens of ids that follow one another. */
function packed(ranks: Ranks): string {
  const lines: string[][] = [];
  let next = -1;
  for (const id of [...ranks.keys()].sort((a, b) => a - b)) {
    if (id !== next) lines.push(["!", String(id)]);
    lines.at(-1)!.push(ranks.get(id)!);
    next = id + 1;
  }
  return lines.map((line) => line.join(" ")).join("\n");
}

function unpacked(text: string): Ranks {
  const ranks = new Map<number, string>();
  for (const line of text.split("\n").filter((candidate) => candidate !== "")) {
    const [, first, ...tokens] = line.split(" ");
    tokens.forEach((token, i) => void ranks.set(Number(first) + i, token));
  }
  return ranks;
}

/** Says which byte of a text the ranks do not have by itself; undefined where they have all. */
function byteWithoutRank(ranks: Ranks, text: string): string | undefined {
  const tokens = new Set(ranks.values());
  const byte = new TextEncoder()
    .encode(text)
    .find((candidate) => !tokens.has(btoa(String.fromCharCode(candidate))));
  return byte === undefined
    ? undefined
    : `the ranks have no token for byte 0x${byte.toString(16).padStart(2, "0")}; each of the 256 needs one`;
}
