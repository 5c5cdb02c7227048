/** Trains for real as a process of its own. Slow: operators are timed for four seconds first. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { TrainingResult } from "../../src/commands/train.ts";
import { writeRun } from "../invoke.ts";

const root = fileURLToPath(new URL("../../../..", import.meta.url));
// The same tests against what is built.
const cli = process.env["TEST_DIST"]
  ? [join(root, "apps/trainer/dist/cli.js")]
  : ["--conditions=@trireme/source", "--import", "tsx", join(root, "apps/trainer/src/cli.ts")];

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command line; `react` is told what was written to stderr so far. */
function run(
  args: readonly string[],
  react: (stderr: string, child: ChildProcess) => void = () => undefined,
): Promise<Ended> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [...cli, ...args], { cwd: root });
    let [stdout, stderr] = ["", ""];
    child.stdout.on("data", (data: Buffer) => (stdout += String(data)));
    child.stderr.on("data", (data: Buffer) => {
      stderr += String(data);
      react(stderr, child);
    });
    child.on("close", (code) => resolve({ code, stdout, stderr }));
  });
}

function parse(stdout: string): TrainingResult {
  return JSON.parse(stdout);
}

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "trireme-training-"));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

it("trains four ranks on real threads: the loss falls, text comes out, everything is written", async () => {
  const file = writeRun(
    folder,
    'sample: {prompt: "the ", tokens: 9}\noptimizer: {learningRate: 0.01}\n',
  );
  const out = join(folder, "out");
  const { code, stdout } = await run(["train", file, "--json", "--out", out, "--set", "steps=60"]);
  expect(code).toBe(0);
  const result = parse(stdout);
  // A fresh model knows nothing: ln of the vocabulary, "abcdehtx .?" and the unknown token, ± 0.1.
  expect(result.firstLoss).toBeGreaterThan(Math.log(9) - 0.1);
  expect(result.lastLoss).toBeLessThan(result.firstLoss / 2);
  expect(result.sample).toHaveLength(13);
  expect(result.prediction?.predicted).toBeGreaterThan(0);
  expect(readdirSync(out).sort()).toEqual([
    "checkpoints",
    "metrics.jsonl",
    "prediction.json",
    "run.json",
    "trace.json",
  ]);
}, 60_000);

it("stopped by SIGINT saves, ends with exit code 1, and goes on to the same losses", async () => {
  const file = writeRun(folder);
  const more = ["--json", "--set", "steps=2000"];
  const args = ["train", file, ...more, "--out", join(folder, "a")];
  let asked = false;
  const interrupted = await run(args, (stderr, child) => {
    // A second signal would stop it at once.
    if (!asked && /step +\d+\/2000/.test(stderr)) asked = child.kill("SIGINT");
  });
  expect(interrupted.code).toBe(1);
  const { step, reason } = parse(interrupted.stdout);
  expect(reason).toBe("signal");
  expect(step).toBeLessThan(2000);
  const resumed = await run(args);
  expect(resumed.code).toBe(0);
  expect(parse(resumed.stdout)).toMatchObject({ from: step, step: 2000 });
  await run(["train", file, ...more, "--out", join(folder, "b")]);
  expect(losses(join(folder, "a"))).toEqual(losses(join(folder, "b")));
}, 120_000);

it("goes on to its checkpoint when nobody reads what it prints any more", async () => {
  const args = ["train", writeRun(folder), "--out", join(folder, "out")];
  const { code } = await run(args, (_stderr, child) => {
    child.stdout?.destroy();
    child.stderr?.destroy();
  });
  expect(code).toBe(0);
  expect(readdirSync(join(folder, "out", "checkpoints"))).toContain("step-00000010");
}, 60_000);

it("ends an estimate at SIGINT, as any command that has nothing to save", async () => {
  const child = spawn(process.execPath, [...cli, "estimate", writeRun(folder)], { cwd: root });
  let stderr = "";
  child.stderr.on("data", (data: Buffer) => (stderr += String(data)));
  // It is timing operators by then, of which it says nothing where there is no screen.
  setTimeout(() => child.kill("SIGINT"), 3000);
  const signal = await new Promise((resolve) => child.on("close", (_, by) => resolve(by)));
  expect(signal).toBe("SIGINT");
  expect(stderr).not.toContain("stopping");
}, 60_000);

/** Loss of each step of a run folder. */
function losses(directory: string): readonly number[] {
  const lines = readFileSync(join(directory, "metrics.jsonl"), "utf8").trim().split("\n");
  const events: readonly { kind: string; loss: number }[] = lines.map((line) => JSON.parse(line));
  return events.filter((event) => event.kind === "step").map((event) => event.loss);
}
