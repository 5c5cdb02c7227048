/**
 * The `.bin` shards of llm.c: 256 little-endian 32-bit integers, of which the first three are a magic
 * number, a version and the number of tokens, then the tokens. Version 1 (GPT-2) has 16-bit tokens;
 * version 7 (Llama 3) has 32-bit tokens. Source: llm.c, dev/data/data_common.py, llmc/dataloader.h.
 */
import { TriremeError } from "@trireme/core";
import { type ByteReader, readBytes } from "./byte-reader.ts";
import { fingerprintValues, sampledBytes } from "./fingerprint.ts";
import { FormatError } from "./format-error.ts";
import { type TokenSource, elementSource } from "./token-source.ts";
import { type TokenType, encodeTokens, largestToken } from "./token-type.ts";

const headerBytes = 1024;

/** Whose tokens a shard has: it decides their width. */
export type LlmcModel = "gpt-2" | "llama-3";

interface Kind {
  readonly model: LlmcModel;
  readonly magic: number;
  readonly version: number;
  readonly type: TokenType;
}

const kinds: readonly Kind[] = [
  { model: "gpt-2", magic: 20_240_520, version: 1, type: "u16" },
  { model: "llama-3", magic: 20_240_801, version: 7, type: "i32" },
];

/** The bytes of a shard. */
export function encodeLlmcShard(
  tokens: ArrayLike<number>,
  model: LlmcModel = "gpt-2",
): Uint8Array<ArrayBuffer> {
  const { magic, version, type } = kinds.find((kind) => kind.model === model)!;
  if (tokens.length > 0x7fffffff) {
    throw new TriremeError(
      "DATASET",
      `${tokens.length} tokens; a shard counts them in 31 bits: split them`,
    );
  }
  const most = largestToken(type);
  for (let i = 0; i < tokens.length; i++) {
    const token = tokens[i]!;
    if (!Number.isInteger(token) || token < 0 || token > most) {
      throw new TriremeError(
        "DATASET",
        `token ${token} at ${i}: ids of a ${model} shard are 0..${most}`,
      );
    }
  }
  const body = encodeTokens(type, tokens);
  const bytes = new Uint8Array(headerBytes + body.length);
  const view = new DataView(bytes.buffer);
  [magic, version, tokens.length].forEach((value, i) => view.setInt32(4 * i, value, true));
  bytes.set(body, headerBytes);
  return bytes;
}

/** The tokens of a shard, after checking its header against its size. */
export function llmcSource(reader: ByteReader): TokenSource {
  const header = readBytes(reader, 0, headerBytes);
  const view = new DataView(header.buffer);
  const [magic, version, tokens] = [0, 4, 8].map((offset) => view.getInt32(offset, true));
  const kind = kinds.find((candidate) => candidate.magic === magic);
  if (kind === undefined) {
    throw new FormatError(
      reader.name,
      0,
      `magic number ${magic}; a shard of llm.c starts with ${kinds.map((k) => k.magic).join(" or ")}`,
    );
  }
  if (version !== kind.version) {
    throw new FormatError(
      reader.name,
      4,
      `version ${version}; a ${kind.model} shard has version ${kind.version}`,
    );
  }
  const source = elementSource(
    reader,
    kind.type,
    headerBytes,
    fingerprintValues(sampledBytes(reader)),
  );
  if (tokens !== source.length) {
    throw new FormatError(
      reader.name,
      8,
      `the header counts ${tokens} tokens, the file has ${source.length}`,
    );
  }
  return source;
}
