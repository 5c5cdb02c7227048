/** Megatron's pair of files on disk. */
import { writeFile } from "node:fs/promises";
import { TriremeError } from "@trireme/core";
import { readBytes } from "../byte-reader.ts";
import { type MegatronIndex, decodeMegatronIndex, encodeMegatronIndex } from "../megatron-index.ts";
import type { TokenDataset } from "../token-dataset.ts";
import { type TokenSource, megatronSource } from "../token-source.ts";
import { encodeTokens, tokenTypeFor } from "../token-type.ts";
import { type FileReader, openFileReader } from "./file-reader.ts";
import { openRemoteFileReader } from "./remote/blocking-reader.ts";
import type { RemoteObject } from "./remote/remote-object.ts";
import { type RemoteReaderOptions, openRemote } from "./remote/remote-reader.ts";

/** A Megatron dataset that holds its data file open until it is closed. */
export interface MegatronFiles {
  readonly index: MegatronIndex;
  readonly source: TokenSource;
  close(): void;
}

/** Opens `<prefix>.bin` and `<prefix>.idx`, and checks the one against the other. */
export async function openMegatronFiles(prefix: string): Promise<MegatronFiles> {
  const data = openFileReader(`${prefix}.bin`);
  try {
    const index = decodeMegatronIndex(`${prefix}.idx`, indexBytes(prefix), data.size);
    return { index, source: megatronSource(index, data), close: () => data.close() };
  } catch (error) {
    data.close();
    throw error;
  }
}

/** All of an index; a hundred million documents are 2 GiB, more than a file is read at once. */
function indexBytes(prefix: string): Uint8Array {
  let index: FileReader;
  try {
    index = openFileReader(`${prefix}.idx`);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new TriremeError("DATA", `${reason}, but ${prefix}.bin is there`, { cause });
  }
  try {
    return readBytes(index, 0, index.size);
  } finally {
    index.close();
  }
}

/**
 * Opens a `.bin` and its `.idx` in a store. The index is read whole, the data in blocks as samples ask
 * for them; each read of the source blocks its thread until they are there.
 */
export async function openRemoteMegatronFiles(
  data: RemoteObject,
  index: RemoteObject,
  options: RemoteReaderOptions = {},
): Promise<MegatronFiles> {
  const opened = await openRemote(index, options);
  const bytes = new Uint8Array(opened.size);
  try {
    await opened.read(0, bytes);
  } finally {
    opened.close();
  }
  const reader = await openRemoteFileReader(data, options);
  try {
    const decoded = decodeMegatronIndex(index.name, bytes, reader.size);
    return {
      index: decoded,
      source: megatronSource(decoded, reader),
      close: () => reader.close(),
    };
  } catch (error) {
    reader.close();
    throw error;
  }
}

/** Writes a dataset as `<prefix>.bin` and `<prefix>.idx`, one sequence per document, as Megatron does. */
export async function writeMegatronFiles(prefix: string, dataset: TokenDataset): Promise<void> {
  const { tokens, documents, vocabulary } = dataset;
  const type = tokenTypeFor(vocabulary);
  const lengths = Int32Array.from(documents, (end, i) => end - (i === 0 ? 0 : documents[i - 1]!));
  const starts = Float64Array.from({ length: documents.length + 1 }, (_, i) => i);
  await writeFile(`${prefix}.bin`, encodeTokens(type, tokens));
  await writeFile(`${prefix}.idx`, encodeMegatronIndex({ type, lengths, documents: starts }));
}
