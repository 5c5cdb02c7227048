/** Making directories without Node's recursive mkdir. */
import { mkdirSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";

/**
 * Makes a directory and those above it; no error where it exists. One at a time: where a file system
 * answers "no such file" to every mkdir, as /proc does, Node's recursive one tries for ever.
 * @throws What the system says.
 */
export function makeDirectorySync(path: string): void {
  const missing: string[] = [];
  for (let at = resolve(path); statSync(at, { throwIfNoEntry: false }) === undefined;) {
    missing.push(at);
    at = dirname(at);
  }
  for (const at of missing.toReversed()) {
    try {
      mkdirSync(at);
    } catch (error) {
      // Another writer may make it at the same time.
      if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
    }
  }
}
