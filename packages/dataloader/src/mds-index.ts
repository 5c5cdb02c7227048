/**
 * The `index.json` of an MDS dataset: for each shard its columns, its number of samples, and the file
 * it lies in with size and hashes, compressed and not. Source: mosaicml/streaming,
 * streaming/base/format/base/writer.py and streaming/base/format/mds/reader.py.
 */
import { FormatError } from "./format-error.ts";
import type { MdsColumns, MdsShardOptions } from "./mds-shard.ts";
import { type JsonValue, pythonJson } from "./python-json.ts";

/** A file as the index lists it. */
export interface MdsFile {
  readonly basename: string;
  readonly bytes: number;
  /** Hex digests by name of the hash. */
  readonly hashes: Readonly<Record<string, string>>;
}

/** A shard as the index lists it. */
export interface MdsShardInfo {
  readonly samples: number;
  readonly columns: MdsColumns;
  readonly options: MdsShardOptions;
  readonly raw: MdsFile;
  /** The compressed file; undefined where the shard is not compressed. */
  readonly zip: MdsFile | undefined;
}

/** The text of an index, byte for byte as the reference writes it. */
export function encodeMdsIndex(shards: readonly MdsShardInfo[]): string {
  const listed = shards.map(({ samples, columns, options, raw, zip }) => ({
    column_encodings: columns.encodings,
    column_names: columns.names,
    column_sizes: columns.sizes,
    compression: options.compression,
    format: "mds",
    hashes: options.hashes,
    raw_data: fileJson(raw),
    samples,
    size_limit: options.sizeLimit,
    version: 2,
    zip_data: zip === undefined ? null : fileJson(zip),
  }));
  return pythonJson({ version: 2, shards: listed }, true);
}

function fileJson({ basename, bytes, hashes }: MdsFile): JsonValue {
  return { basename, bytes, hashes };
}

type Fields = Readonly<Record<string, unknown>>;

/** Reads an index; what is missing or of the wrong kind is refused with its path in the file. */
export function decodeMdsIndex(name: string, text: string): readonly MdsShardInfo[] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new FormatError(name, undefined, "not JSON", { cause });
  }
  const reader = new FieldReader(name);
  const index = reader.fields(value, "the index");
  reader.expect(index, "version", 2, "");
  const shards: unknown = index["shards"];
  if (!Array.isArray(shards)) throw new FormatError(name, undefined, "shards is no list");
  return shards.map((shard: unknown, i) => reader.shard(shard, `shards[${i}]`));
}

class FieldReader {
  readonly #name: string;

  constructor(name: string) {
    this.#name = name;
  }

  shard(value: unknown, path: string): MdsShardInfo {
    const fields = this.fields(value, path);
    this.expect(fields, "version", 2, `${path}.`);
    this.expect(fields, "format", "mds", `${path}.`);
    const names = this.list(fields, "column_names", isText, path);
    const encodings = this.list(fields, "column_encodings", isText, path);
    const sizes = this.list(fields, "column_sizes", isSize, path);
    if (encodings.length !== names.length || sizes.length !== names.length) {
      this.#fail(
        `${path} has ${names.length} column names, ${encodings.length} encodings and ${sizes.length} sizes`,
      );
    }
    const zip: unknown = fields["zip_data"];
    return {
      samples: this.one(fields, "samples", isCount, path),
      columns: { names, encodings, sizes },
      options: {
        sizeLimit: this.one(fields, "size_limit", isSize, path),
        compression: this.one(fields, "compression", isTextOrNull, path),
        hashes: this.list(fields, "hashes", isText, path),
      },
      raw: this.file(fields["raw_data"], `${path}.raw_data`),
      zip: zip === null || zip === undefined ? undefined : this.file(zip, `${path}.zip_data`),
    };
  }

  file(value: unknown, path: string): MdsFile {
    const fields = this.fields(value, path);
    const basename = this.one(fields, "basename", isText, path);
    // A name from a file that others wrote must not lead out of the dataset's directory.
    if (/^$|[/\\]|^\.\.?$/.test(basename))
      this.#fail(`${path}.basename ${JSON.stringify(basename)} is no plain file name`);
    const hashes = this.fields(fields["hashes"], `${path}.hashes`);
    const digests = Object.keys(hashes).map((hash): [string, string] => [
      hash,
      this.one(hashes, hash, isText, `${path}.hashes`),
    ]);
    return {
      basename,
      bytes: this.one(fields, "bytes", isCount, path),
      hashes: Object.fromEntries(digests),
    };
  }

  fields(value: unknown, path: string): Fields {
    return isFields(value) ? value : this.#fail(`${path} is no object`);
  }

  expect(fields: Fields, key: string, wanted: unknown, path: string): void {
    if (fields[key] !== wanted) {
      this.#fail(
        `${path}${key} is ${JSON.stringify(fields[key])}; only ${JSON.stringify(wanted)} is known`,
      );
    }
  }

  one<T>(fields: Fields, key: string, is: (value: unknown) => value is T, path: string): T {
    const value = fields[key];
    return is(value) ? value : this.#fail(`${path}.${key} is ${JSON.stringify(value)}`);
  }

  list<T>(
    fields: Fields,
    key: string,
    is: (value: unknown) => value is T,
    path: string,
  ): readonly T[] {
    const value = fields[key];
    if (!Array.isArray(value)) return this.#fail(`${path}.${key} is no list`);
    return value.map((item: unknown, i) =>
      is(item) ? item : this.#fail(`${path}.${key}[${i}] is ${JSON.stringify(item)}`),
    );
  }

  #fail(reason: string): never {
    throw new FormatError(this.#name, undefined, reason);
  }
}

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const isText = (value: unknown): value is string => typeof value === "string";
const isTextOrNull = (value: unknown): value is string | null => value === null || isText(value);
const isCount = (value: unknown): value is number =>
  Number.isSafeInteger(value) && Number(value) >= 0;
const isSize = (value: unknown): value is number | null => value === null || isCount(value);
