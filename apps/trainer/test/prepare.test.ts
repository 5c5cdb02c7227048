import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openMegatronFiles } from "@trireme/dataloader/node";
import { invoke } from "./invoke.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "trireme-prepare-"));
  writeFileSync(join(folder, "a.txt"), "one two. ".repeat(100));
  writeFileSync(
    join(folder, "b.jsonl"),
    '{"text":"three","body":"x"}\n{"text":"four","body":"y"}\n',
  );
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

test("texts become token files, and what came of it is printed", async () => {
  const out = join(folder, "out");
  const made = await invoke(["prepare", folder, "--out", out, "--workers", "0", "--end", "0"]);
  expect(made).toMatchObject({ code: 0, stderr: "" });
  expect(made.stdout).toMatch(/documents +3 +of 2 files/);
  // Three ends of documents, and the bytes of the texts.
  const tokens = 900 + "three".length + "four".length + 3;
  expect(made.stdout).toMatch(new RegExp(`tokens +${tokens} +of 256`));
  const files = await openMegatronFiles(out);
  expect(files.index.lengths.length).toBe(3);
  files.close();
});

test("the numbers come as JSON, and the same again adds nothing", async () => {
  const out = join(folder, "out");
  const run = ["prepare", join(folder, "b.jsonl"), "--out", out, "--field", "body", "--json"];
  const first = await invoke([...run, "--tokenizer", "character"]);
  expect(JSON.parse(first.stdout)).toMatchObject({ documents: 2, tokens: 2, resumed: 0 });
  const bytes = readFileSync(`${out}.bin`);
  const again = await invoke([...run, "--tokenizer", "character"]);
  expect(again.code).toBe(0);
  expect(readFileSync(`${out}.bin`)).toEqual(bytes);
});

test("on a screen a bar is drawn, and taken away", async () => {
  const made = await invoke(["prepare", folder, "--out", join(folder, "o"), "--workers", "0"], {
    live: true,
  });
  expect(made.code).toBe(0);
  expect(made.stderr).toContain("tokens");
  expect(made.stderr).toContain("─");
});

test("a stop is told, and the same command goes on", async () => {
  const stop = new AbortController();
  stop.abort();
  const out = join(folder, "out");
  const args = ["prepare", folder, "--out", out, "--workers", "0"];
  const stopped = await invoke(args, { signal: stop.signal });
  expect(stopped).toMatchObject({ code: 1, stdout: "" });
  expect(stopped.stderr).toBe("stopped; the same command goes on from here\n");
  expect(existsSync(`${out}.bin`)).toBe(false);
  expect((await invoke(args)).code).toBe(0);
});

test.each([
  [[], "which texts? give files or directories"],
  [["a"], "where to? give --out data/train"],
  [
    ["a", "--out", "x", "--tokeniser", "byte"],
    "unknown option --tokeniser; did you mean --tokenizer?",
  ],
  [["a", "--out", "x", "--end", "-1"], "--end"],
  [["a", "--out", "x", "--workers", "two"], "--workers two must be a whole number"],
  [["a", "--out="], "--out needs a value"],
])("bad arguments %j are refused in a line", async (args, line) => {
  const { code, stderr } = await invoke(["prepare", ...args]);
  expect(code).toBe(2);
  expect(stderr).toContain(`trireme prepare: ${line}`);
  expect(stderr.trimEnd().split("\n")).toHaveLength(1);
});

test.each([
  [["nowhere", "--out", "x"], "nowhere: no such file or directory"],
  [["FOLDER", "--out", "x", "--tokenizer", "gpt3"], "gpt3"],
  [["FOLDER", "--out", "x", "--tokenizer", "none.json"], "none.json: no such file"],
])("what is not there is named: %j", async (args, line) => {
  const { code, stderr } = await invoke([
    "prepare",
    ...args.map((a) => (a === "FOLDER" ? folder : a)),
  ]);
  expect(code).toBe(2);
  expect(stderr).toContain(line);
  expect(stderr.trimEnd().split("\n")).toHaveLength(1);
});

test("help says what it does", async () => {
  const { code, stdout } = await invoke(["prepare", "--help"]);
  expect(code).toBe(0);
  expect(stdout).toContain("--tokenizer NAME");
  expect(Math.max(...stdout.split("\n").map((l) => l.length))).toBeLessThanOrEqual(100);
});
