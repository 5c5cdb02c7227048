import { spawn } from "node:child_process";
import { mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";

let directory = "";
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "trireme-killed-"));
});
afterAll(async () => {
  await rm(directory, { recursive: true });
});
const both = async (prefix: string) => [
  await readFile(`${prefix}.bin`),
  await readFile(`${prefix}.idx`),
];
const execArgv = [
  "--conditions=@trireme/source",
  "--import",
  pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href,
];

test("a process killed at a random moment leaves what the next one goes on from", async () => {
  const script = `
    const { prepareTokens } = await import("@trireme/dataloader/node");
    const { byteTokenizer } = await import("@trireme/dataloader");
    function* documents() {
      for (let i = 0; i < 300; i++) yield { name: "d" + i, text: ("document " + i + " ").repeat(i % 90) };
    }
    await prepareTokens({
      documents: documents(), tokenizer: byteTokenizer(), prefix: process.argv[1],
      workers: 0, flushBytes: 4000, onProgress: () => process.stdout.write("."),
    });
    process.stdout.write("!");
  `;
  const run = (prefix: string, dots: number) =>
    new Promise<string>((resolve, reject) => {
      const child = spawn(
        process.execPath,
        [...execArgv, "--input-type=module", "-e", script, prefix],
        { cwd: new URL("../..", import.meta.url), stdio: ["ignore", "pipe", "inherit"] },
      );
      let out = "";
      child.stdout.on("data", (piece: Buffer) => {
        out += piece.toString();
        if (out.length >= dots) child.kill("SIGKILL");
      });
      child.on("error", reject).on("close", () => resolve(out));
    });
  const whole = join(directory, "process");
  expect(await run(whole, Infinity)).toMatch(/!$/);
  const prefix = join(directory, "killed");
  let out = "";
  for (const dots of [1, 12, 25]) out = await run(prefix, dots);
  expect(out).not.toMatch(/!$/);
  expect(
    (await readdir(directory)).filter((name) => name.startsWith("killed.partial")),
  ).not.toEqual([]);
  expect(await run(prefix, Infinity)).toMatch(/!$/);
  expect(await both(prefix)).toEqual(await both(whole));
});
