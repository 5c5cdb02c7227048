import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { makeRunDirectory } from "../src/run-directory.ts";

let folder: string;
const home = process.cwd();
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "trireme-runs-"));
  process.chdir(folder);
});
afterEach(() => {
  process.chdir(home);
  rmSync(folder, { recursive: true, force: true });
});

it("gives two runs that start at once a folder each", () => {
  expect([makeRunDirectory("a", undefined), makeRunDirectory("a", undefined)]).toEqual([
    join("runs", "a-1"),
    join("runs", "a-2"),
  ]);
  expect(readdirSync("runs")).toEqual(["a-1", "a-2"]);
});

it.each([
  ["a b/c", "a-b-c-1"],
  ["日本", "run-1"],
  ["--x", "x-1"],
  ["..", "run-1"],
  ["n".repeat(300), `${"n".repeat(100)}-1`],
])("makes a plain name of %j", (name, expected) => {
  expect(makeRunDirectory(name, undefined)).toBe(join("runs", expected));
});
