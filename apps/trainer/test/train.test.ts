import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { lockDirectory } from "@trireme/runtime/node";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { TrainingResult } from "../src/commands/train.ts";
import { widest } from "./capture.ts";
import { FakeRuntime, fakeParts } from "./fake-parts.ts";
import { type InvokeOptions, type Outcome, invoke, writeRun } from "./invoke.ts";

let folder: string;
let run: string;
let out: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "trireme-train-"));
  run = writeRun(folder, 'evaluate: {every: 5}\nsample: {prompt: "the ", tokens: 5}\n');
  out = join(folder, "out");
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

function train(options: InvokeOptions = {}, ...more: string[]): Promise<Outcome> {
  return invoke(["train", run, "--out", out, ...more], options);
}

function parse(stdout: string): TrainingResult {
  return JSON.parse(stdout);
}

describe("train", () => {
  it("prints the prediction, the result, the sample and where everything lies", async () => {
    const { code, stdout } = await train();
    expect(code).toBe(0);
    expect(stdout).toMatch(/^prediction +\S+ .*s a step, from \d+ operators timed here/m);
    expect(stdout).toMatch(
      /^loss +4\.000 → 0\.400 nats a character in 10 steps; validation 2\.500$/m,
    );
    expect(stdout).toMatch(
      /^step +.* predicted, 100 ms measured \(median\): \d+\.\d % too (short|long)$/m,
    );
    expect(stdout).toMatch(/^difference +/m);
    expect(stdout).toContain("\n  the ttttt\n");
    for (const file of ["run.json", "metrics.jsonl", "trace.json", "prediction.json"]) {
      expect(existsSync(join(out, file))).toBe(true);
    }
    expect(readdirSync(join(out, "checkpoints"))).toContain("step-00000010");
  });

  it.each(["out", "saves"])("leaves alone the folder %s that another run writes", async (name) => {
    const saves = join(folder, "saves");
    const more = ["--set", `checkpoint.directory=${saves}`];
    mkdirSync(join(folder, name));
    const letGo = await lockDirectory(join(folder, name));
    const { code, stderr } = await train({}, ...more);
    expect(stderr).toBe(
      `cannot write ${join(folder, name)}: another training run writes it; wait for it, or name another folder\n`,
    );
    expect(code).toBe(2);
    expect(existsSync(join(out, "metrics.jsonl"))).toBe(false);
    await letGo!();
    expect((await train({}, ...more)).code).toBe(0);
    expect((await train({}, ...more, "--set", "steps=11")).code).toBe(0);
  });

  it("stopped before its first step does not say that there was nothing to do", async () => {
    const { code, stdout } = await train({ signal: AbortSignal.abort() });
    expect(code).toBe(1);
    expect(stdout).toMatch(/^steps +none: stopped before step 1 of 10$/m);
  });

  it("shows progress on stderr, in plain lines where that is no screen", async () => {
    const { stderr } = await train();
    expect(stderr).toMatch(/^step {2}1\/10 {2}loss 4\.000 {2}.* tokens\/s {2}eta \d+ s$/m);
    expect(stderr).toMatch(/^step 10\/10 {2}loss 0\.400 {2}val 2\.500 {2}.* tokens\/s$/m);
    expect(stderr).not.toContain("\r");
  });

  it("prints JSON with the fields of the library and nothing else on stdout", async () => {
    const { stdout } = await train({}, "--json");
    const result = parse(stdout);
    expect(result).toMatchObject({
      name: "tiny",
      reason: "done",
      step: 10,
      firstLoss: 4,
      validationLoss: 2.5,
    });
    expect(result.stepSeconds).toHaveLength(10);
    expect(result.prediction?.measured).toBeCloseTo(0.1, 12);
    expect(result.sample).toBe("the ttttt");
  });

  it("splits the difference between prediction and measurement into causes that add up", async () => {
    const { prediction } = parse((await train({}, "--json")).stdout);
    const sum = Object.values(prediction!.causes).reduce((a, b) => a + b, 0);
    // The measured step is the median here: all steps take as long.
    expect(sum).toBeCloseTo(prediction!.measured - prediction!.predicted, 9);
    expect(prediction!.error).toBeCloseTo(prediction!.predicted / prediction!.measured - 1, 12);
  });

  it("goes on from the newest checkpoint of its folder", async () => {
    const control = new AbortController();
    let steps = 0;
    const saveRequested = (): boolean => {
      if (++steps === 4) control.abort();
      return false;
    };
    const stopped = await train({ signal: control.signal, saveRequested });
    expect(stopped.code).toBe(1);
    expect(stopped.stderr).toContain("stopped after step 4 of 10");
    const runtime = new FakeRuntime();
    const resumed = await train({ parts: fakeParts(runtime) });
    expect(resumed.code).toBe(0);
    expect(resumed.stderr).toContain("going on after step 4");
    expect(runtime.calls.slice(0, 3)).toEqual(["start", "restore 4", "step 4"]);
    expect(resumed.stdout).toContain("in steps 5 to 10");
    const again = await train();
    expect(again.code).toBe(0);
    expect(again.stdout).toContain("all 10 steps were done before");
  });

  it("saves when asked to", async () => {
    let asked = 0;
    await train({ saveRequested: () => ++asked === 3 }, "--set", "checkpoint.keep=5");
    const names = readdirSync(join(out, "checkpoints")).filter((name) => name.startsWith("step"));
    expect(names.sort()).toEqual(["step-00000003", "step-00000010"]);
  });

  it("fails with exit code 1 and one line when the loss is lost, keeping the metrics", async () => {
    const runtime = new FakeRuntime();
    runtime.failAt = 3;
    const { code, stderr } = await train({ parts: fakeParts(runtime) });
    expect(code).toBe(1);
    const lines = stderr.trimEnd().split("\n");
    expect(lines.at(-1)).toMatch(/^step 3: loss NaN.*training has diverged/);
    expect(runtime.calls.at(-1)).toBe("stop");
    expect(readFileSync(join(out, "metrics.jsonl"), "utf8").trim().split("\n")).toHaveLength(4);
  });

  it("writes elsewhere when the run says where its checkpoints go", async () => {
    const directory = join(folder, "saves");
    await train({}, "--set", `checkpoint.directory=${directory}`);
    expect(readdirSync(directory)).toContain("latest");
    expect(existsSync(join(out, "checkpoints"))).toBe(false);
  });

  it("trains without validation and without a sample", async () => {
    const { code, stdout } = await train({}, "--set", "data.validation=0", "--set", "sample=null");
    expect(code).toBe(0);
    expect(stdout).not.toContain("validation 2");
    expect(stdout).not.toContain("\nsample\n");
  });

  it.each([80, 120])("fits in %i columns, progress included", async (columns) => {
    const { stdout, stderr } = await train({ columns, live: true });
    const own = stdout.split("\n").filter((line) => !line.includes(folder));
    expect(widest(own.join("\n"))).toBeLessThanOrEqual(columns);
    const drawn = stderr.replaceAll("\u001b[K", "").split(/[\r\n]/);
    expect(widest(drawn.join("\n"))).toBeLessThanOrEqual(columns - 1);
    expect(drawn.some((line) => line.includes("━"))).toBe(true);
    // The line is gone when the run is over.
    expect(stderr.endsWith("\r\u001b[K")).toBe(true);
  });
});
