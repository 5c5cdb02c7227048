/** A file system as a storage of checkpoints: operations with real fsync and rename, reads at any place. */
import type { Stats } from "node:fs";
import { type FileHandle, mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import type { FileOperation } from "@trireme/checkpoint";
import { TriremeError } from "@trireme/core";
import { type CheckpointStorage, damaged } from "../store/storage.ts";

/** Longest call of the system for one read or write: Linux moves no more than 2³¹ − 4096 bytes. */
const longestCall = 2 ** 30;

/**
 * The local file system, or one that is mounted and honours fsync and rename. What the system refuses
 * is a TriremeError "FILE" with the operation, the path and the reason.
 */
export const fileStorage: CheckpointStorage = {
  renames: true,
  async execute(operation) {
    try {
      await carryOut(operation);
    } catch (error) {
      throw fileError(describe(operation), error);
    }
  },
  async list(path) {
    try {
      return await readdir(path);
    } catch (error) {
      if (codeOf(error) === "ENOENT") return [];
      throw fileError(`read the directory ${path}`, error);
    }
  },
  async files(path) {
    try {
      const names = await readdir(path);
      const found = await Promise.all(
        names.map(async (name) => ({ name, stats: await statIfThere(join(path, name)) })),
      );
      return found.flatMap(({ name, stats }) =>
        stats?.isFile() === true ? [{ name, size: stats.size }] : [],
      );
    } catch (error) {
      if (codeOf(error) === "ENOENT" || codeOf(error) === "ENOTDIR") return [];
      throw fileError(`read the directory ${path}`, error);
    }
  },
  async read(path, offset, target) {
    try {
      await withFile(path, "r", (file) => fill(file, path, offset, target));
    } catch (error) {
      if (error instanceof TriremeError) throw error;
      const lost = codeOf(error) === "ENOENT" || codeOf(error) === "EIO";
      if (lost) throw damaged(fileError(`read ${path}`, error).message, error);
      throw fileError(`read ${path}`, error);
    }
  },
};

/**
 * Carries operations out in order, each finished before the next begins.
 * @throws TriremeError "FILE" with the operation, the path and the system's reason; those after it
 * are not begun.
 */
export async function executeFileOperations(operations: Iterable<FileOperation>): Promise<void> {
  for (const operation of operations) await fileStorage.execute(operation);
}

/** A refusal of the file system as one line. */
export function fileError(what: string, error: unknown): TriremeError {
  const why = error instanceof Error ? error.message : String(error);
  return new TriremeError("FILE", `cannot ${what}: ${why}`, { cause: error });
}

async function carryOut(operation: FileOperation): Promise<void> {
  switch (operation.kind) {
    case "make-directory":
      await makeDirectory(operation.path);
      return;
    case "write": {
      const { path, bytes, offset = 0 } = operation;
      // In the middle of a row of writes the file must be there: a new one would have a hole.
      await withFile(path, offset === 0 ? "w" : "r+", (file) => writeAt(file, bytes, offset));
      return;
    }
    case "sync":
      await withFile(operation.path, "r+", (file) => file.sync());
      return;
    case "sync-directory":
      await syncDirectory(operation.path);
      return;
    case "rename":
      await rename(operation.from, operation.to);
      return;
    case "remove":
      await rm(operation.path, { recursive: true, force: true });
  }
}

async function writeAt(file: FileHandle, bytes: Uint8Array, offset: number): Promise<void> {
  for (let done = 0; done < bytes.byteLength;) {
    const length = Math.min(longestCall, bytes.byteLength - done);
    done += (await file.write(bytes, done, length, offset + done)).bytesWritten;
  }
}

async function fill(
  file: FileHandle,
  path: string,
  offset: number,
  target: Uint8Array,
): Promise<void> {
  for (let done = 0; done < target.byteLength;) {
    const length = Math.min(longestCall, target.byteLength - done);
    const { bytesRead } = await file.read(target, done, length, offset + done);
    if (bytesRead === 0) {
      const wanted = offset + target.byteLength;
      throw damaged(`${path} ends after ${offset + done} bytes; ${wanted} were written`);
    }
    done += bytesRead;
  }
}

/**
 * Makes a directory and those above it, each one's entry durable in its parent. One at a time: where a
 * file system answers "no such file" to every mkdir, Node's recursive one tries for ever.
 */
export async function makeDirectory(path: string): Promise<void> {
  const missing: string[] = [];
  for (let at = resolve(path); (await statIfThere(at)) === undefined; at = dirname(at)) {
    missing.push(at);
  }
  for (const at of missing.toReversed()) {
    try {
      await mkdir(at);
    } catch (error) {
      // Another writer may make it at the same time.
      if (codeOf(error) !== "EEXIST") throw error;
    }
    await syncDirectory(dirname(at));
  }
}

async function syncDirectory(path: string): Promise<void> {
  // Windows cannot open a directory, and makes its entries durable by itself.
  if (process.platform !== "win32") await withFile(path, "r", (directory) => directory.sync());
}

async function withFile(
  path: string,
  flags: string,
  use: (file: FileHandle) => Promise<void>,
): Promise<void> {
  const file = await open(path, flags);
  try {
    await use(file);
  } finally {
    await file.close();
  }
}

/** Undefined for what went between the listing and the look. */
async function statIfThere(path: string): Promise<Stats | undefined> {
  try {
    return await stat(path);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}

function describe(operation: FileOperation): string {
  switch (operation.kind) {
    case "make-directory":
      return `make the directory ${operation.path}`;
    case "write": {
      const { path, bytes, offset = 0 } = operation;
      const at = offset === 0 ? "" : ` at ${offset}`;
      return `write ${bytes.byteLength} bytes to ${path}${at}`;
    }
    case "sync":
    case "sync-directory":
      return `force ${operation.path} to disk`;
    case "rename":
      return `rename ${operation.from} to ${operation.to}`;
    case "remove":
      break;
  }
  return `remove ${operation.path}`;
}
