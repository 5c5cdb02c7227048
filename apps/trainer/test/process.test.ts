import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, it } from "vitest";

const root = fileURLToPath(new URL("../../..", import.meta.url));
// The same tests against what is built.
const cli = process.env["TEST_DIST"]
  ? [join(root, "apps/trainer/dist/cli.js")]
  : ["--conditions=@trireme/source", "--import", "tsx", join(root, "apps/trainer/src/cli.ts")];

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the command line as a process of its own, at the root of the repository. */
function run(...args: string[]): Promise<Ended> {
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [...cli, ...args],
      { cwd: root },
      (_, stdout, stderr) => {
        resolve({ code: child.exitCode ?? -1, stdout, stderr });
      },
    );
  });
}

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "trireme-process-"));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

it("simulates a published run as a process, its JSON on stdout alone", async () => {
  const { code, stdout, stderr } = await run(
    "simulate",
    "examples/llama3-8b-h100.yaml",
    "--json",
    "--out",
    folder,
  );
  expect([code, stderr]).toEqual([0, ""]);
  expect(JSON.parse(stdout)).toMatchObject({ name: "llama3-8b-h100", fits: true });
}, 20_000);

it("refuses bad input with exit code 2 and one line on stderr", async () => {
  const [missing, ranks] = await Promise.all([
    run("train", "missing.yaml"),
    run("train", "examples/sotu-gpt.yaml", "--set", "cluster.devices=7"),
  ]);
  expect(missing).toEqual({ code: 2, stdout: "", stderr: "missing.yaml: no such file\n" });
  expect(ranks.code).toBe(2);
  expect(ranks.stderr).toMatch(
    /^examples\/sotu-gpt\.yaml:\d+:\d+: plan: dp\(2\) x tp\(1\) x pp\(2\) = 4 ranks, but the cluster has 7 devices; .*\n$/,
  );
}, 20_000);
