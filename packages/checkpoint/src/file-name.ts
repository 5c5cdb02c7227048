/** Names of files in a checkpoint: plain ones, the same on every file system. */
import { TriremeError } from "@trireme/core";

/** Refuses what is no plain file name: a directory in it, a leading "." or "-", other characters. */
export function checkFileName(name: string): void {
  // Letters, digits and ".-_" mean the same on every file system.
  if (/^[A-Za-z0-9_][A-Za-z0-9._-]*$/.test(name)) return;
  throw new TriremeError(
    "CHECKPOINT",
    `file name ${JSON.stringify(name)}: use letters, digits, ".", "-" and "_", not starting with "." or "-"`,
  );
}
