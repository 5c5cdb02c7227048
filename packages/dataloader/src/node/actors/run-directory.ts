/**
 * A folder for the rings and parcels of one run, in memory where the system has such a file system. It
 * is named by its process, so that what a crash left behind is known as such: it is swept when the next
 * run starts, and never read.
 */
import { randomUUID } from "node:crypto";
import { accessSync, constants, mkdirSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isAlive } from "../is-alive.ts";

const prefix = "trireme-loader-";

/** The file system in memory, else the one for temporary files. */
function memoryDirectory(): string {
  try {
    accessSync("/dev/shm", constants.W_OK);
    return "/dev/shm";
  } catch {
    return tmpdir();
  }
}

/** Makes a new folder, after removing those whose processes are gone. */
export function createRunDirectory(base: string = memoryDirectory()): string {
  for (const name of readdirSync(base)) {
    const owner = name.startsWith(prefix) ? Number.parseInt(name.slice(prefix.length), 10) : NaN;
    if (!Number.isInteger(owner) || isAlive(owner)) continue;
    try {
      removeRunDirectory(join(base, name));
    } catch {
      // Another user's: it is theirs to sweep, and no reason not to start.
    }
  }
  const path = join(base, `${prefix}${process.pid}-${randomUUID()}`);
  mkdirSync(path, { mode: 0o700 });
  return path;
}

/** Removes a folder and all in it. */
export function removeRunDirectory(path: string): void {
  rmSync(path, { recursive: true, force: true });
}
