/** Where a command writes: the folder asked for, or the next free `runs/NAME-N`. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { lockDirectory, makeDirectorySync } from "@trireme/runtime/node";
import { InputError } from "./input-error.ts";

/** Longest part of a name that a folder's is made of: file systems take 255 bytes in all. */
const longestStem = 100;

/**
 * Makes the folder of a run; a new one under `runs` unless one is named. Two runs that start at once
 * have two.
 * @throws InputError where it cannot be made.
 */
export function makeRunDirectory(name: string, out: string | undefined): string {
  const directory = out ?? "runs";
  try {
    makeDirectorySync(directory);
    return out ?? nextOf(name);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    const option = out === undefined ? "" : "--out: ";
    throw new InputError([`${option}cannot write ${directory}: ${why}`], { cause: error });
  }
}

/**
 * Locks the folder of a run, and that of its checkpoints where it is another, so that no two
 * processes of this machine write one.
 * @returns What lets go of them.
 * @throws InputError where another process has one.
 */
export async function lockFolders(
  directory: string,
  checkpoints: string | undefined,
): Promise<() => Promise<void>> {
  const held: (() => Promise<void>)[] = [];
  const release = async (): Promise<void> => {
    for (const letGo of held) await letGo();
  };
  for (const folder of new Set([directory, checkpoints ?? directory])) {
    makeDirectorySync(folder);
    const letGo = await lockDirectory(folder);
    if (letGo === undefined) {
      await release();
      throw new InputError([
        `cannot write ${folder}: another training run writes it; wait for it, or name another folder`,
      ]);
    }
    held.push(letGo);
  }
  return release;
}

function nextOf(name: string): string {
  const plain = name.replaceAll(/[^A-Za-z0-9._-]+/g, "-").replaceAll(/^[.-]+|-+$/g, "");
  const stem = plain.slice(0, longestStem) || "run";
  for (let n = 1; ; n++) {
    const directory = join("runs", `${stem}-${n}`);
    try {
      mkdirSync(directory);
      return directory;
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
    }
  }
}
