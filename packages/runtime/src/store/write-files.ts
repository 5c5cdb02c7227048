/** Writes the files of one writer, chunk by chunk, and says what the marker will list. */
import { type MarkedFile, checkFileName, crc32 } from "@trireme/checkpoint";
import type { SnapshotFile } from "../runtime.ts";
import type { Checksum, CheckpointStorage } from "./storage.ts";

/** A file that need not fit in memory. */
export interface StreamedFile {
  readonly name: string;
  /**
   * Its bytes in chunks, first to last. A chunk may be overwritten once the next is asked for. The
   * longest is best a few MiB: it is written in one call.
   */
  readonly chunks: () => Iterable<Uint8Array> | AsyncIterable<Uint8Array>;
}

/**
 * Bytes of the pieces in which a file in memory is written: few enough that handing them to the system
 * costs nothing, many enough that the checksum of one is taken while it is written.
 */
export const chunkBytes: number = 64 * 2 ** 20;

/**
 * Writes and syncs files in `directory`, which exists, one after the other. The checksum of a chunk is
 * taken while the chunk is being written, and a file is synced while the next is being written; all are
 * when this resolves, and nothing is under way any more when it rejects.
 * @throws TriremeError "FILE" of the storage, "CHECKPOINT" for a name that is no plain file name.
 */
export async function writeFiles(
  storage: CheckpointStorage,
  directory: string,
  files: Iterable<SnapshotFile | StreamedFile>,
  checksum: Checksum = crc32,
): Promise<readonly MarkedFile[]> {
  const marked: MarkedFile[] = [];
  let syncing: Promise<void> = Promise.resolve();
  try {
    for (const file of files) {
      const path = `${directory}/${file.name}`;
      marked.push(await writeFile(storage, path, file, checksum));
      await syncing;
      syncing = storage.execute({ kind: "sync", path });
      // Thrown when it is waited for; until then it must not count as unhandled.
      syncing.catch(() => undefined);
    }
  } catch (error) {
    // What failed first is what is told.
    await syncing;
    throw error;
  }
  await syncing;
  return marked;
}

async function writeFile(
  storage: CheckpointStorage,
  path: string,
  file: SnapshotFile | StreamedFile,
  checksum: Checksum,
): Promise<MarkedFile> {
  checkFileName(file.name);
  const chunks = "bytes" in file ? pieces(file.bytes) : file.chunks();
  let [size, crc] = [0, checksum(new Uint8Array(0))];
  for await (const bytes of chunks) {
    const written = storage.execute({ kind: "write", path, bytes, offset: size });
    crc = checksum(bytes, crc);
    await written;
    size += bytes.byteLength;
  }
  // A file of no bytes, or of no chunks, is a file all the same.
  if (size === 0) await storage.execute({ kind: "write", path, bytes: new Uint8Array(0) });
  return { name: file.name, size, crc32: crc };
}

function* pieces(bytes: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += chunkBytes) {
    yield bytes.subarray(at, at + chunkBytes);
  }
}
