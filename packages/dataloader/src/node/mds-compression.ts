/** How MDS shards are compressed: gzip and Brotli by Node itself, Zstandard by `@trireme/dataloader/zstd`. */
import {
  brotliCompressSync,
  brotliDecompressSync,
  constants,
  gunzipSync,
  gzipSync,
} from "node:zlib";
import { TriremeError } from "@trireme/core";
import { FormatError } from "../format-error.ts";

interface Algorithm {
  /** Ending of the file, the name in the index. */
  readonly name: string;
  /** As the reference has them: streaming/base/compression.py. */
  readonly level: { readonly default: number; readonly least: number; readonly most: number };
  readonly compress: (bytes: Uint8Array, level: number) => Promise<Uint8Array>;
  readonly decompress: (path: string, bytes: Uint8Array) => Promise<Uint8Array>;
}

const zstd = () => import("../zstd/index.ts");

const algorithms: readonly Algorithm[] = [
  {
    name: "gz",
    level: { default: 9, least: 0, most: 9 },
    compress: async (bytes, level) => gzipSync(bytes, { level }),
    decompress: async (_, bytes) => gunzipSync(bytes),
  },
  {
    name: "br",
    level: { default: 11, least: 0, most: 11 },
    compress: async (bytes, level) =>
      brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: level } }),
    decompress: async (_, bytes) => brotliDecompressSync(bytes),
  },
  {
    name: "zstd",
    level: { default: 3, least: 1, most: 22 },
    compress: async (bytes, level) => (await zstd()).zstdCompress(bytes, level),
    decompress: async (path, bytes) => (await zstd()).zstdDecompress(path, bytes),
  },
];

/** A compression that shards are written with. */
export interface MdsCompression {
  /** Ending of the compressed file. */
  readonly extension: string;
  readonly compress: (bytes: Uint8Array) => Promise<Uint8Array>;
}

/** What "gz", "br:5", "zstd:19" and so on say. */
export function mdsCompression(text: string): MdsCompression {
  const [name, level, ...rest] = text.split(":");
  const algorithm = algorithms.find((candidate) => candidate.name === name);
  if (algorithm === undefined || rest.length > 0) {
    throw new TriremeError(
      "FORMAT",
      `compression ${text} is not written here; use gz, br or zstd, with a level such as zstd:3`,
    );
  }
  const { default: usual, least, most } = algorithm.level;
  const chosen = level === undefined ? usual : /^\d+$/.test(level) ? Number(level) : NaN;
  if (!(chosen >= least && chosen <= most)) {
    throw new TriremeError(
      "FORMAT",
      `compression ${text}: the levels of ${name} are ${least} to ${most}`,
    );
  }
  return {
    extension: algorithm.name,
    compress: (bytes) => algorithm.compress(bytes, chosen),
  };
}

/** The content of a compressed shard, whose index says how it is compressed. */
export async function decompressMds(
  path: string,
  bytes: Uint8Array,
  compression: string | null,
): Promise<Uint8Array> {
  const [name] = (compression ?? "").split(":");
  const algorithm = algorithms.find((candidate) => candidate.name === name);
  if (algorithm === undefined) {
    throw new FormatError(
      path,
      undefined,
      `compression ${compression} is not read here; use gz, br or zstd, or decompress the shards`,
    );
  }
  try {
    return await algorithm.decompress(path, bytes);
  } catch (cause) {
    if (cause instanceof TriremeError) throw cause;
    throw new FormatError(path, undefined, `not ${name}-compressed data`, { cause });
  }
}
