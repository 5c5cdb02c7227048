/** Where a command writes: the folder asked for, or the next free `runs/NAME-N`. */
import { existsSync } from "node:fs";
import { join } from "node:path";

/** The folder of a run; a new one under `runs` unless one is named. */
export function runDirectory(name: string, out: string | undefined): string {
  if (out !== undefined) return out;
  const stem = name.replaceAll(/[^A-Za-z0-9._-]+/g, "-");
  for (let n = 1; ; n++) {
    const directory = join("runs", `${stem}-${n}`);
    if (!existsSync(directory)) return directory;
  }
}
