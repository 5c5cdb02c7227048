/**
 * A shard of MosaicML's streaming format (MDS): u32 samples, u32 offset of each and of the end, a JSON
 * description, then the samples, each the u32 sizes of its varying columns and the columns' bytes in
 * order of name. Source: mosaicml/streaming, streaming/base/format/mds/{writer,reader}.py.
 */
import { TriremeError } from "@trireme/core";
import { FormatError } from "./format-error.ts";
import { type MdsCodec, type MdsValue, mdsCodec } from "./mds-encoding.ts";
import { pythonJson } from "./python-json.ts";

/** A sample: a value for each column. */
export type MdsSample = Readonly<Record<string, MdsValue>>;

/** Columns in order of name, and how each is encoded. */
export interface MdsColumns {
  readonly names: readonly string[];
  readonly encodings: readonly string[];
  /** Bytes of each column; null where they vary. */
  readonly sizes: readonly (number | null)[];
}

/** What the description in a shard says besides its columns. */
export interface MdsShardOptions {
  /** Bytes after which a writer begins another shard; null for one shard. */
  readonly sizeLimit: number | null;
  /** "gz:6" and the like; null for none. */
  readonly compression: string | null;
  /** Names of the hashes kept in the index. */
  readonly hashes: readonly string[];
}

/** The columns of a table from names to encodings. */
export function mdsColumns(encodings: Readonly<Record<string, string>>): MdsColumns {
  const names = Object.keys(encodings).sort((a, b) => (a < b ? -1 : 1));
  const listed = names.map((name) => encodings[name]!);
  return {
    names,
    encodings: listed,
    sizes: listed.map((encoding) => mdsCodec(encoding).size ?? null),
  };
}

/** The bytes of one sample. */
export function encodeMdsSample(columns: MdsColumns, sample: MdsSample): Uint8Array<ArrayBuffer> {
  const values = columns.names.map((name, i) => {
    const value = sample[name];
    if (value === undefined)
      throw new TriremeError("FORMAT", `the sample has no column ${JSON.stringify(name)}`);
    const codec = mdsCodec(columns.encodings[i]!);
    return naming(name, () => codec.encode(value));
  });
  const varying = values.filter((_, i) => columns.sizes[i] === null);
  const bytes = new Uint8Array(
    4 * varying.length + values.reduce((sum, value) => sum + value.length, 0),
  );
  const view = new DataView(bytes.buffer);
  varying.forEach((value, i) => view.setUint32(4 * i, value.length, true));
  let at = 4 * varying.length;
  for (const value of values) {
    bytes.set(value, at);
    at += value.length;
  }
  return bytes;
}

/** The description that stands in each shard. */
export function mdsDescription(
  columns: MdsColumns,
  options: MdsShardOptions,
): Uint8Array<ArrayBuffer> {
  const text = pythonJson(
    {
      column_encodings: columns.encodings,
      column_names: columns.names,
      column_sizes: columns.sizes,
      compression: options.compression,
      format: "mds",
      hashes: options.hashes,
      size_limit: options.sizeLimit,
      version: 2,
    },
    true,
  );
  return new TextEncoder().encode(text);
}

/** The bytes of a shard of encoded samples. */
export function encodeMdsShard(
  columns: MdsColumns,
  options: MdsShardOptions,
  samples: readonly Uint8Array[],
): Uint8Array<ArrayBuffer> {
  const description = mdsDescription(columns, options);
  const start = 8 + 4 * samples.length + description.length;
  const size = samples.reduce((sum, { length }) => sum + length, start);
  if (size > 0xffffffff) {
    throw new TriremeError(
      "FORMAT",
      `a shard of ${size} bytes: its offsets have 32 bits, so use a size limit below 4 GiB`,
    );
  }
  const bytes = new Uint8Array(size);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, samples.length, true);
  bytes.set(description, 8 + 4 * samples.length);
  let at = start;
  samples.forEach((sample, i) => {
    view.setUint32(4 + 4 * i, at, true);
    bytes.set(sample, at);
    at += sample.length;
  });
  view.setUint32(4 + 4 * samples.length, at, true);
  return bytes;
}

/** An opened shard. */
export interface MdsShard {
  /** Samples there are. */
  readonly length: number;
  /** Decodes a sample; byte columns are views of the shard. */
  sample(i: number): MdsSample;
}

/** Opens the bytes of a shard, whose columns the index says. Checks the offsets before any sample. */
export function decodeMdsShard(name: string, bytes: Uint8Array, columns: MdsColumns): MdsShard {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < 8)
    throw new FormatError(name, undefined, `${bytes.length} bytes; a shard has at least 8`);
  const length = view.getUint32(0, true);
  const table = 8 + 4 * length;
  if (table > bytes.length) {
    throw new FormatError(
      name,
      0,
      `${length} samples need ${table} bytes of offsets; the file has ${bytes.length}`,
    );
  }
  const offset = (i: number): number => view.getUint32(4 + 4 * i, true);
  for (let i = 0; i <= length; i++) {
    const least = i === 0 ? table : offset(i - 1);
    if (offset(i) < least || offset(i) > bytes.length) {
      throw new FormatError(
        name,
        4 + 4 * i,
        `offset ${i} is ${offset(i)}; it must lie in ${least}..${bytes.length}`,
      );
    }
  }
  if (offset(length) !== bytes.length) {
    throw new FormatError(
      name,
      4 + 4 * length,
      `the samples end at ${offset(length)}, the file at ${bytes.length}`,
    );
  }
  const codecs = columns.encodings.map(mdsCodec);
  codecs.forEach(({ size }, i) => {
    const listed = columns.sizes[i] ?? null;
    if (size === undefined || listed === size) return;
    throw new FormatError(
      name,
      undefined,
      `column ${columns.names[i]} of encoding ${columns.encodings[i]} has ${size} bytes, but its columns say ${listed ?? "that they vary"}`,
    );
  });
  return {
    length,
    sample(i) {
      if (!Number.isInteger(i) || i < 0 || i >= length) {
        throw new TriremeError("RANGE", `${name}: sample ${i} is outside 0..${length - 1}`);
      }
      return decodeSample(name, bytes, offset(i), offset(i + 1), columns, codecs);
    },
  };
}

function decodeSample(
  name: string,
  bytes: Uint8Array,
  start: number,
  end: number,
  columns: MdsColumns,
  codecs: readonly MdsCodec[],
): MdsSample {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const varying = columns.sizes.filter((size) => size === null).length;
  let head = start;
  let at = start + 4 * varying;
  if (at > end)
    throw new FormatError(
      name,
      start,
      `${varying} sizes do not fit into a sample of ${end - start} bytes`,
    );
  const sample: [string, MdsValue][] = columns.names.map((column, i) => {
    let size = columns.sizes[i] ?? 0;
    if (columns.sizes[i] === null) {
      size = view.getUint32(head, true);
      head += 4;
    }
    if (at + size > end)
      throw new FormatError(
        name,
        at,
        `column ${column} of ${size} bytes reaches past its sample, which ends at ${end}`,
      );
    const value = naming(column, () => codecs[i]!.decode(bytes.subarray(at, at + size)), name, at);
    at += size;
    return [column, value];
  });
  if (at !== end)
    throw new FormatError(name, at, `the columns end here, their sample ends at ${end}`);
  return Object.fromEntries(sample);
}

/** Names the column, and where known the file, in what goes wrong with a value. */
function naming<T>(column: string, run: () => T, file?: string, offset?: number): T {
  try {
    return run();
  } catch (cause) {
    if (!(cause instanceof TriremeError)) throw cause;
    const reason = `column ${column}: ${cause.message}`;
    if (file !== undefined) throw new FormatError(file, offset, reason, { cause });
    throw new TriremeError(cause.code, reason, { cause });
  }
}
