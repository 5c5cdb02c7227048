/** The main job, as `npm start` runs it: about a minute on two quiet cores. */
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { root, sourceCondition } from "../workspace.ts";

interface Result {
  readonly steps: number;
  readonly firstLoss: number;
  readonly loss: number;
  readonly validationLoss: number;
  readonly prediction: { readonly predicted: number; readonly measured: number };
  readonly sample: string;
  readonly files: Readonly<Record<string, string>>;
}

test("the default run learns English letters, predicts its step, and leaves its files", async () => {
  const out = mkdtempSync(join(tmpdir(), "trireme-main-job-"));
  try {
    const run = [
      "apps/trainer/src/cli.ts",
      "train",
      "examples/sotu-gpt.yaml",
      "--json",
      "--out",
      out,
    ];
    const command = ["--import", "tsx", `--conditions=${sourceCondition}`, ...run];
    const { stdout } = await promisify(execFile)(process.execPath, command, { cwd: root });
    const result = JSON.parse(stdout) as Result;
    // A fresh model guesses evenly among the 99 characters.
    expect(Math.abs(result.firstLoss - Math.log(99))).toBeLessThan(0.1);
    // Two letters in a row alone give 2.4 nats.
    expect(result.validationLoss).toBeLessThan(2.2);
    expect(result.sample.length).toBeGreaterThan(300);
    for (const file of Object.values(result.files)) expect(existsSync(file)).toBe(true);
  } finally {
    rmSync(out, { recursive: true, force: true });
  }
});
