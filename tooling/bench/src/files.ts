/** Where benchmark files are. */
import { readdirSync } from "node:fs";
import { join } from "node:path";

/** The benchmark files of a repository, relative to its root, in order. */
export function benchmarkFiles(root: string): readonly string[] {
  const found: string[] = [];
  for (const group of ["packages", "apps", "tooling"]) {
    for (const member of names(join(root, group))) {
      for (const name of names(join(root, group, member, "bench"))) {
        if (name.endsWith(".bench.ts")) found.push(join(group, member, "bench", name));
      }
    }
  }
  return found;
}

/**
 * Whether a file may hold figures that a pattern matches: ids start with the package, so "core/heap"
 * rules out the files of other packages; those of the harnesses may be of any.
 */
export function mayMatch(file: string, pattern: string): boolean {
  const [owner] = pattern.split("/");
  return (
    !pattern.includes("/") ||
    file.includes(pattern) ||
    file.startsWith("tooling/") ||
    file.split("/")[1]?.endsWith(owner ?? "") === true
  );
}

function names(directory: string): readonly string[] {
  try {
    return readdirSync(directory).sort();
  } catch {
    return [];
  }
}
