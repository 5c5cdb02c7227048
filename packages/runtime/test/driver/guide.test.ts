import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { bundleCode } from "./bundle.ts";

it("the program of the guide to driving hosts prints what the guide says", async () => {
  const guide = readFileSync(new URL("../../../../docs/drive-hosts.md", import.meta.url), "utf8");
  const [, program, output] = /```ts\n(.*?)```\s+```text\n(.*?)```/s.exec(guide)!;
  const file = await bundleCode(program!);
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [file]);
  expect(stderr).toBe("");
  expect(stdout).toBe(output);
});
