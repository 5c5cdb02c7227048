/** Checkpoints in a bucket of S3, or of any store that speaks its protocol. */
import { crc32 } from "node:zlib";
import { TriremeError } from "@trireme/core";
import { type ShardedStore, checkpointStore } from "../../store/checkpoint-store.ts";
import { type S3StorageOptions, s3Storage } from "./s3-storage.ts";

/** Where checkpoints go, and how many stay. */
export interface S3StoreOptions extends S3StorageOptions {
  /** What all keys begin with, without "/" at its ends: a directory of checkpoints. */
  readonly prefix: string;
  /** Newest ones kept; default 2. */
  readonly keep?: number;
}

/**
 * A store under `prefix`. A process that dies at any point leaves the newest complete checkpoint
 * readable; objects and parts that it left behind are ignored, and removed by the next save.
 */
export function s3Store(options: S3StoreOptions): ShardedStore {
  const { prefix, keep = 2 } = options;
  const plain = prefix.split("/").every((part) => part !== "" && part !== "." && part !== "..");
  if (!plain) {
    throw new TriremeError(
      "CHECKPOINT",
      `prefix ${JSON.stringify(prefix)}: names with "/" between them, as runs/a/checkpoints`,
    );
  }
  return checkpointStore({ storage: s3Storage(options), directory: prefix, keep, checksum: crc32 });
}
