/** Checkpoints in a directory of the local file system, by the commit protocol of `@trireme/checkpoint`. */
import {
  type CheckpointEntry,
  type CheckpointName,
  commitPlan,
  completeCheckpoints,
  markerName,
  parseCheckpointName,
} from "@trireme/checkpoint";
import { TriremeError } from "@trireme/core";
import { readFile, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { CheckpointStore, SnapshotFile } from "../runtime.ts";
import { executeFileOperations, fileError } from "./file-operations.ts";

/** How many checkpoints stay. */
export interface FileStoreOptions {
  /** Newest ones kept; default 2. */
  readonly keep?: number;
}

/**
 * A store in `directory`, which is made on the first save. A process that dies at any point leaves
 * the newest complete checkpoint readable; what it left half-written is ignored and later removed.
 */
export function fileStore(directory: string, options: FileStoreOptions = {}): CheckpointStore {
  const { keep = 2 } = options;
  return {
    async newest() {
      return (await complete(directory))[0]?.step;
    },
    async load(step) {
      const found = (await complete(directory)).find((checkpoint) => checkpoint.step === step);
      if (found === undefined) {
        const message = `${directory} has no complete checkpoint of step ${step}`;
        throw new TriremeError("CHECKPOINT", message);
      }
      return { step, files: await readFiles(join(directory, found.name)) };
    },
    async save(snapshot) {
      const existing = await namesIn(directory);
      const { step, files } = snapshot;
      await executeFileOperations(commitPlan({ directory, step, files, keep, existing }));
    },
  };
}

async function complete(directory: string): Promise<readonly CheckpointName[]> {
  const names = (await namesIn(directory)).filter(
    (name) => parseCheckpointName(name) !== undefined,
  );
  return completeCheckpoints(await Promise.all(names.map((name) => entryOf(directory, name))));
}

/** Names in a directory; none where it does not exist. */
async function namesIn(directory: string): Promise<readonly string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if (isMissing(error)) return [];
    throw fileError(`read the directory ${directory}`, error);
  }
}

async function entryOf(directory: string, name: string): Promise<CheckpointEntry> {
  const path = join(directory, name);
  if (!(await stat(path)).isDirectory()) return { name, files: [], marker: undefined };
  const names = (await readdir(path)).filter((file) => file !== markerName);
  const files = await Promise.all(
    names.map(async (file) => ({ name: file, size: (await stat(join(path, file))).size })),
  );
  return { name, files, marker: await textOf(join(path, markerName)) };
}

async function textOf(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw fileError(`read ${path}`, error);
  }
}

async function readFiles(path: string): Promise<readonly SnapshotFile[]> {
  try {
    const names = (await readdir(path)).filter((name) => name !== markerName);
    return await Promise.all(
      names.sort().map(async (name) => ({ name, bytes: plain(await readFile(join(path, name))) })),
    );
  } catch (error) {
    throw fileError(`read the checkpoint ${path}`, error);
  }
}

/** Not a Buffer, whose `slice` is a view where that of every other Uint8Array copies. */
function plain(buffer: Buffer): Uint8Array {
  return new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.byteLength);
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ENOENT";
}
