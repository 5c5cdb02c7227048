import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { againstDist, packages, root, sourceCondition } from "./workspace.ts";

const tsx = createRequire(import.meta.url).resolve("tsx/cli");

/** The first program of a README and the output that is printed below it. */
function exampleOf(name: string): { program: string; output: string } {
  const readme = readFileSync(join(root, "packages", name, "README.md"), "utf8");
  const [, program, output] = /```ts\n(.*?)```\s+```text\n(.*?)```/s.exec(readme) ?? [];
  const [, first] = /```ts\n(.*?)```/s.exec(readme) ?? [];
  if (program === undefined || output === undefined || program !== first) {
    throw new Error(
      `packages/${name}/README.md: its first ts block has no text block right after it`,
    );
  }
  return { program, output };
}

// Run as a program of the package itself, which reaches what the package depends on and nothing else.
test.concurrent.each(packages)(
  "the program that opens the README of %s prints what it says",
  async (name) => {
    const { program, output } = exampleOf(name);
    const condition = againstDist ? [] : [`--conditions=${sourceCondition}`];
    const { stdout, stderr } = await promisify(execFile)(
      process.execPath,
      [tsx, ...condition, "--input-type=module", "--eval", program],
      { cwd: join(root, "packages", name), encoding: "utf8" },
    );
    expect(stdout).toBe(output);
    expect(stderr).toBe("");
  },
  60_000,
);
