/** An MDS dataset on disk: its index, and its shards one at a time, decompressed and checked. */
import { createHash, getHashes } from "node:crypto";
import { access, mkdir, readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { TriremeError } from "@trireme/core";
import { FormatError } from "../format-error.ts";
import { type MdsFile, type MdsShardInfo, decodeMdsIndex, encodeMdsIndex } from "../mds-index.ts";
import {
  type MdsSample,
  type MdsShard,
  decodeMdsShard,
  encodeMdsSample,
  encodeMdsShard,
  mdsColumns,
  mdsDescription,
} from "../mds-shard.ts";
import { decompressMds, mdsCompression } from "./mds-compression.ts";

/** An opened dataset. */
export interface MdsDirectory {
  readonly shards: readonly MdsShardInfo[];
  /** Samples over all shards. */
  readonly length: number;
  /** Reads shard `i`: the raw file, or where only the compressed one is there, that. */
  shard(i: number): Promise<MdsShard>;
}

/** Opens the dataset in a directory. */
export async function openMdsDirectory(directory: string): Promise<MdsDirectory> {
  const path = join(directory, "index.json");
  const text = await readFile(path, "utf8").catch((cause: unknown) => {
    throw new TriremeError("DATA", `${path}: cannot be read; an MDS dataset has an index.json`, {
      cause,
    });
  });
  const shards = decodeMdsIndex(path, text);
  return {
    shards,
    length: shards.reduce((sum, { samples }) => sum + samples, 0),
    async shard(i) {
      const info = shards[i];
      if (info === undefined)
        throw new TriremeError("RANGE", `${path}: shard ${i} is outside 0..${shards.length - 1}`);
      const bytes = await shardBytes(directory, info);
      const file = join(directory, info.raw.basename);
      const shard = decodeMdsShard(file, bytes, info.columns);
      if (shard.length !== info.samples) {
        throw new FormatError(file, 0, `${shard.length} samples; the index says ${info.samples}`);
      }
      return shard;
    },
  };
}

async function shardBytes(
  directory: string,
  { raw, zip, options }: MdsShardInfo,
): Promise<Uint8Array> {
  const path = join(directory, raw.basename);
  const there = await access(path).then(
    () => true,
    () => false,
  );
  if (there) return checked(path, await readFile(path), raw);
  if (zip === undefined)
    throw new TriremeError("DATA", `${path}: no such file, and the index names no compressed one`);
  const packed = join(directory, zip.basename);
  const bytes = await readFile(packed).catch((cause: unknown) => {
    throw new TriremeError("DATA", `${packed}: no such file, nor ${raw.basename}`, { cause });
  });
  const content = checked(packed, bytes, zip);
  return checked(path, await decompressMds(packed, content, options.compression), raw);
}

/** Checks size and hashes; a hash that this Node does not have is refused, not skipped. */
function checked(path: string, bytes: Uint8Array, { bytes: size, hashes }: MdsFile): Uint8Array {
  if (bytes.length !== size)
    throw new FormatError(path, undefined, `${bytes.length} bytes; the index says ${size}`);
  for (const [name, wanted] of Object.entries(hashes)) {
    if (!getHashes().includes(name)) {
      throw new FormatError(
        path,
        undefined,
        `hash ${name} cannot be checked here; remove it from the index or use sha256`,
      );
    }
    const found = createHash(name).update(bytes).digest("hex");
    if (found !== wanted)
      throw new FormatError(path, undefined, `${name} is ${found}; the index says ${wanted}`);
  }
  return bytes;
}

/** How to write a dataset. */
export interface MdsWriteOptions {
  /** Encodings by name of the column: `{ text: "str", id: "int" }`. */
  readonly columns: Readonly<Record<string, string>>;
  /** Bytes after which a new shard begins. Default 64 MiB, as the reference has it; null for one shard. */
  readonly sizeLimit?: number | null;
  /** "gz", "br" or "zstd", or one with a level, as in "zstd:19"; without it, shards are not compressed. */
  readonly compression?: string;
  /** Hashes to keep in the index, such as "sha256". */
  readonly hashes?: readonly string[];
}

/**
 * Writes samples as an MDS dataset into a directory, which is made.
 * @throws TriremeError "DATA" where the directory has files already, as the reference refuses it.
 */
export async function writeMdsDirectory(
  directory: string,
  samples: Iterable<MdsSample> | AsyncIterable<MdsSample>,
  options: MdsWriteOptions,
): Promise<readonly MdsShardInfo[]> {
  const columns = mdsColumns(options.columns);
  const { sizeLimit = 2 ** 26, compression = null, hashes = [] } = options;
  if (sizeLimit !== null && !(sizeLimit > 0))
    throw new TriremeError("FORMAT", `sizeLimit ${sizeLimit} is not positive; null is no limit`);
  const strange = hashes.find((name) => !getHashes().includes(name));
  if (strange !== undefined)
    throw new TriremeError("FORMAT", `hash ${strange} is not known here; use sha256`);
  const packer = compression === null ? undefined : mdsCompression(compression);
  const description = { sizeLimit, compression, hashes };
  const fixed = 8 + mdsDescription(columns, description).length;
  await mkdir(directory, { recursive: true });
  // A raw shard of another dataset would be read before a compressed one of this.
  if ((await readdir(directory)).length > 0) {
    throw new TriremeError(
      "DATA",
      `${directory}: has files already; give an empty or a new directory`,
    );
  }

  const shards: MdsShardInfo[] = [];
  let held: Uint8Array[] = [];
  let size = fixed;
  const put = async (basename: string, bytes: Uint8Array): Promise<MdsFile> => {
    await writeFile(join(directory, basename), bytes);
    const digests = hashes.map((name) => [name, createHash(name).update(bytes).digest("hex")]);
    return { basename, bytes: bytes.length, hashes: Object.fromEntries(digests) };
  };
  const flush = async (): Promise<void> => {
    const basename = `shard.${String(shards.length).padStart(5, "0")}.mds`;
    const bytes = encodeMdsShard(columns, description, held);
    const shard = { samples: held.length, columns, options: description };
    if (packer === undefined) {
      shards.push({ ...shard, raw: await put(basename, bytes), zip: undefined });
    } else {
      const digests = hashes.map((name) => [name, createHash(name).update(bytes).digest("hex")]);
      const raw: MdsFile = { basename, bytes: bytes.length, hashes: Object.fromEntries(digests) };
      const packed = await packer.compress(bytes);
      shards.push({ ...shard, raw, zip: await put(`${basename}.${packer.extension}`, packed) });
    }
    held = [];
    size = fixed;
  };
  for await (const sample of samples) {
    const bytes = encodeMdsSample(columns, sample);
    // Each sample takes an offset of 4 bytes besides its own.
    if (sizeLimit !== null && held.length > 0 && size + bytes.length + 4 > sizeLimit) await flush();
    held.push(bytes);
    size += bytes.length + 4;
  }
  if (held.length > 0) await flush();
  await writeFile(join(directory, "index.json"), encodeMdsIndex(shards));
  return shards;
}
