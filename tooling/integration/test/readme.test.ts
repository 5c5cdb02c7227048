import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { againstDist, packages, root, sourceCondition } from "./workspace.ts";

const tsx = createRequire(import.meta.url).resolve("tsx/cli");

interface Example {
  /** The page, from the repository's root, and which of its programs, from 1 up. */
  readonly page: string;
  readonly number: number;
  readonly program: string;
  readonly output: string;
  /** The package that it is run as a part of. */
  readonly name: string;
}

/** Every program of a page that has its output right below it. */
function examplesOf(page: string, name: string): Example[] {
  const text = readFileSync(join(root, page), "utf8");
  return [...text.matchAll(/```ts\n((?:(?!```)[^])*)```\s+```text\n((?:(?!```)[^])*)```/g)].map(
    ([, program, output], i) => ({
      page,
      number: i + 1,
      program: program!,
      output: output!,
      name,
    }),
  );
}

/** Of a README, whose first program must have its output below it. */
function readmeOf(name: string): Example[] {
  const page = `packages/${name}/README.md`;
  const examples = examplesOf(page, name);
  const [, first] = /```ts\n(.*?)```/s.exec(readFileSync(join(root, page), "utf8")) ?? [];
  if (first === undefined || examples[0]?.program !== first) {
    throw new Error(`${page}: its first ts block has no text block right after it`);
  }
  return examples;
}

const examples = [
  ...packages.flatMap(readmeOf),
  ...examplesOf("docs/run-in-astra-sim.md", "simulator"),
];

// Run as a program of the package itself, which reaches what the package depends on and nothing else.
test.concurrent.each(examples)(
  "program $number of $page prints what it says",
  async ({ program, output, name }) => {
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
