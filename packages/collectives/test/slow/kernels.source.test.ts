import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

test("the checked-in kernels are a fresh build of their source", () => {
  const script = fileURLToPath(new URL("../../scripts/kernels.mjs", import.meta.url));
  const built = spawnSync(process.execPath, [script], { encoding: "utf8" });
  const stored = ["communicator/kernel-bytes.ts", "compression/compress-bytes.ts"].map((file) =>
    readFileSync(new URL(`../../src/${file}`, import.meta.url), "utf8"),
  );
  expect(built.stdout).toBe(stored.join(""));
});
