/** Carries out file operations that `@trireme/checkpoint` decided on, with real fsync and rename. */
import { TriremeError } from "@trireme/core";
import type { FileOperation } from "@trireme/checkpoint";
import { type FileHandle, mkdir, open, rename, rm } from "node:fs/promises";
import { dirname, resolve } from "node:path";

/**
 * Carries out operations in order, each finished before the next begins.
 * @throws TriremeError "FILE" with the operation, the path and the system's reason; those after it
 * are not begun.
 */
export async function executeFileOperations(operations: Iterable<FileOperation>): Promise<void> {
  for (const operation of operations) {
    try {
      await execute(operation);
    } catch (error) {
      throw fileError(describe(operation), error);
    }
  }
}

/** A refusal of the file system as one line. */
export function fileError(what: string, error: unknown): TriremeError {
  const why = error instanceof Error ? error.message : String(error);
  return new TriremeError("FILE", `cannot ${what}: ${why}`, { cause: error });
}

async function execute(operation: FileOperation): Promise<void> {
  switch (operation.kind) {
    case "make-directory":
      await makeDirectory(operation.path);
      return;
    case "write":
      await withFile(operation.path, "w", (file) => file.writeFile(operation.bytes));
      return;
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

/** Makes a directory and those above it, each one's entry durable in its parent. */
async function makeDirectory(path: string): Promise<void> {
  const first = await mkdir(path, { recursive: true });
  if (first === undefined) return;
  // Every directory from the first that was missing down to the last is new.
  const top = resolve(first);
  for (let made = resolve(path); ; made = dirname(made)) {
    await syncDirectory(dirname(made));
    if (made === top) return;
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

function describe(operation: FileOperation): string {
  switch (operation.kind) {
    case "make-directory":
      return `make the directory ${operation.path}`;
    case "write":
      return `write ${operation.bytes.byteLength} bytes to ${operation.path}`;
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
