/**
 * What checkpoints are kept in: a file system, an object store, a fake that fails on purpose. Stores
 * are written against this interface alone; the protocol is that of `@trireme/checkpoint`.
 */
import type { FileOperation } from "@trireme/checkpoint";
import { TriremeError } from "@trireme/core";

/** Carries operations out; paths have "/" between their parts. */
export interface CheckpointStorage {
  /** False of an object store, where a file appears whole when it is synced (`CommitOptions`). */
  readonly renames: boolean;
  /** Carries one operation out; it is done when this resolves. Calls for different files may overlap. */
  execute(operation: FileOperation): Promise<void>;
  /** Names in a directory; [] where it does not exist. */
  list(path: string): Promise<readonly string[]>;
  /** The files directly in a directory, with their sizes; [] where there is no such directory. */
  files(path: string): Promise<readonly { readonly name: string; readonly size: number }[]>;
  /**
   * Fills `target` with a file's bytes from `offset` on.
   * @throws TriremeError "DAMAGED" where the file is missing, ends earlier or cannot be read back.
   */
  read(path: string, offset: number, target: Uint8Array): Promise<void>;
}

/** CRC-32 of bytes; given that of what came before, of both together. `zlib.crc32` is one. */
export type Checksum = (bytes: Uint8Array, before?: number) => number;

/** What is wrong with a checkpoint that was complete; the one before may be whole. */
export function damaged(reason: string, cause?: unknown): TriremeError {
  return new TriremeError("DAMAGED", reason, cause === undefined ? undefined : { cause });
}

/** Whether an error says that a checkpoint is damaged, and not that it could not be looked at. */
export function isDamaged(error: unknown): error is TriremeError {
  return error instanceof TriremeError && error.code === "DAMAGED";
}
