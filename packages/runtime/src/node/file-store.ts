/** Checkpoints in a directory of the local file system. */
import { crc32 } from "node:zlib";
import { type ShardedStore, checkpointStore } from "../store/checkpoint-store.ts";
import type { CheckpointStorage } from "../store/storage.ts";
import { fileStorage } from "./file-storage.ts";

/** How many checkpoints stay, and where operations go. */
export interface FileStoreOptions {
  /** Newest ones kept; default 2. */
  readonly keep?: number;
  /** Default the file system; another one to watch it, or to make it fail. */
  readonly storage?: CheckpointStorage;
}

/**
 * A store in `directory`, which is made on the first save, with every file's checksum. A process that
 * dies at any point leaves the newest complete checkpoint readable; what it left half-written is
 * ignored and later removed.
 */
export function fileStore(directory: string, options: FileStoreOptions = {}): ShardedStore {
  const { storage = fileStorage, ...rest } = options;
  return checkpointStore({ storage, directory, checksum: crc32, ...rest });
}
