/** Documents in files of every text format, by their names, with how many of their bytes were read. */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { TriremeError } from "@trireme/core";
import type { ByteReader } from "../byte-reader.ts";
import type { Document } from "../document.ts";
import { readPieces } from "./file-pieces.ts";
import { openFileReader } from "./file-reader.ts";
import { readJsonLinesDocuments } from "./json-lines-file.ts";
import { readDocument, reading, textDocument } from "./text-documents.ts";

/** How documents are found in files that have more than texts. */
export interface CorpusOptions {
  /** The key in JSON Lines and the column in Parquet that has the text. Default "text". */
  readonly field?: string;
}

/** The documents of a list of files, to be iterated once or more, always in the same order. */
export interface Corpus extends AsyncIterable<Document> {
  /** The files, in the order they are read. */
  readonly files: readonly string[];
  /** Bytes of the files as they lie on the disk. */
  readonly bytes: number;
  /** Of these, how many the last iteration has read so far: `bytesRead / bytes` is the progress. */
  readonly bytesRead: number;
}

type Read = (
  path: string,
  field: string,
  onRead: (bytes: number) => void,
) => AsyncGenerator<Document>;

/** By ending; what is compressed may end with `.gz` or `.zst` besides. */
const formats: readonly { readonly ending: RegExp; readonly read: Read }[] = [
  { ending: /\.(?:jsonl|ndjson)(?:\.gz|\.zst)?$/, read: readJsonLinesDocuments },
  { ending: /\.txt(?:\.gz|\.zst)?$/, read: readText },
  { ending: /\.parquet$/, read: readParquet },
];
const endings = ".txt, .jsonl, .ndjson (also with .gz or .zst) or .parquet";

/**
 * Opens text at `paths`: plain text (a file is a document), JSON Lines and Parquet; of a directory,
 * every file in it with such an ending, ordered by name (by UTF-16 code unit, the same on every
 * machine), without those of its subdirectories. Missing files and unknown endings are refused now,
 * what is wrong within a file when it is read.
 */
export async function readCorpus(
  paths: readonly string[],
  options: CorpusOptions = {},
): Promise<Corpus> {
  const { field = "text" } = options;
  const found: { readonly path: string; readonly size: number; readonly read: Read }[] = [];
  for (const path of paths) {
    const info = await reading(path, stat(path));
    const before = found.length;
    const inside = info.isDirectory() ? await reading(path, readdir(path)) : [];
    const files = info.isDirectory()
      ? inside.sort((a, b) => (a < b ? -1 : 1)).map((name) => join(path, name))
      : [path];
    for (const file of files) {
      const format = formats.find(({ ending }) => ending.test(file));
      // What is not known as text may be anything, also a link to nowhere.
      const at = format === undefined ? undefined : await reading(file, stat(file));
      if (format !== undefined && at?.isFile() === true)
        found.push({ path: file, size: at.size, read: format.read });
      else if (!info.isDirectory())
        throw new TriremeError("DATA", `${path}: not known as text; give ${endings}`);
    }
    if (found.length === before)
      throw new TriremeError(
        "DATA",
        `${path}: the directory has no file that ends with ${endings}`,
      );
  }
  if (found.length === 0)
    throw new TriremeError("DATA", `no files; give ${endings}, or a directory of them`);
  let bytesRead = 0;
  return {
    files: found.map(({ path }) => path),
    bytes: found.reduce((sum, { size }) => sum + size, 0),
    get bytesRead() {
      return bytesRead;
    },
    async *[Symbol.asyncIterator]() {
      bytesRead = 0;
      for (const { path, read } of found) {
        yield* read(path, field, (bytes) => void (bytesRead += bytes));
      }
    },
  };
}

async function* readText(
  path: string,
  _field: string,
  onRead: (bytes: number) => void,
): AsyncGenerator<Document> {
  if (path.endsWith(".txt")) {
    const { size } = await stat(path);
    yield await readDocument(path);
    onRead(size);
    return;
  }
  const pieces: Uint8Array[] = [];
  for await (const piece of readPieces(path, onRead)) pieces.push(piece);
  yield textDocument(path, Buffer.concat(pieces));
}

async function* readParquet(
  path: string,
  field: string,
  onRead: (bytes: number) => void,
): AsyncGenerator<Document> {
  const { openParquet, parquetDocuments } = await import("../parquet/index.ts");
  const file = openFileReader(path);
  // Not every byte of a file is read, as it has other columns too: rows tell how far it is.
  let told = 0;
  try {
    const reader: ByteReader = file;
    const opened = await openParquet(reader);
    let row = 0;
    for await (const document of parquetDocuments(opened, field)) {
      const now = Math.floor((file.size * ++row) / opened.rows);
      onRead(now - told);
      told = now;
      yield document;
    }
    onRead(file.size - told);
  } finally {
    file.close();
  }
}
