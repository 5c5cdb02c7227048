import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fakeParts } from "./fake-parts.ts";
import { invoke, writeRun } from "./invoke.ts";

let folder: string;
let run: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "trireme-bad-"));
  run = writeRun(folder);
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

const commands = ["train", "simulate", "estimate"] as const;

async function refused(...args: string[]): Promise<string[]> {
  const { code, stdout, stderr } = await invoke(args);
  expect(code).toBe(2);
  expect(stdout).toBe("");
  return stderr.trimEnd().split("\n");
}

describe.each(commands)("%s refuses", (command) => {
  it("a file that is not there", async () => {
    expect(await refused(command, "missing.yaml")).toEqual(["missing.yaml: no such file"]);
  });

  it("a directory", async () => {
    expect(await refused(command, folder)).toEqual([
      `${folder}: this is a directory; give a run file`,
    ]);
  });

  it("an unknown key, with its place and the nearest known one", async () => {
    const path = writeRun(folder, "sed: 1\n");
    expect(await refused(command, path)).toEqual([
      `${path}:17:1: sed: unknown key; did you mean seed?`,
    ]);
  });

  it("seven devices for dp 2 × pp 2, naming the override", async () => {
    expect(await refused(command, run, "--set", "cluster.devices=7")).toEqual([
      `${run}:7:1: plan: dp(2) x tp(1) x pp(2) = 4 ranks, but the cluster has 7 devices; nearest: 4 devices`,
    ]);
  });

  it("all problems at once, in the order of the file", async () => {
    const lines = await refused(command, run, "--set", "steps=0", "--set", "plan.pp=x");
    expect(lines).toEqual([
      '--set: plan.pp = "x": must be a number',
      "--set: steps = 0: must be at least 1; nearest: 1",
    ]);
  });

  it("an override without a value", async () => {
    expect(await refused(command, run, "--set", "plan.tp")).toEqual([
      "--set plan.tp: an override must be path=value; for example plan.tp=8",
    ]);
  });

  it("text that is no YAML, with its place", async () => {
    const path = join(folder, "broken.yaml");
    writeFileSync(path, "plan: {tp: 1\nsteps: 3\n");
    expect((await refused(command, path))[0]).toMatch(/broken\.yaml:\d+:\d+: /);
  });

  it("texts that are not there, empty, or no text, with the place in the file", async () => {
    rmSync(join(folder, "texts"), { recursive: true });
    const at = `${run}:13:9: data.path = "texts": ${join(folder, "texts")}`;
    expect(await refused(command, run)).toEqual([`${at}: no such file or directory`]);
    mkdirSync(join(folder, "texts"));
    expect((await refused(command, run))[0]).toContain(`${at}: the directory has no .txt file`);
    writeFileSync(join(folder, "texts", "a.txt"), "");
    expect((await refused(command, run))[0]).toMatch(
      /^.*run\.yaml:13:9: .*a\.txt: the file is empty/,
    );
    writeFileSync(join(folder, "texts", "a.txt"), Uint8Array.of(0xff, 0xfe, 0x00));
    expect((await refused(command, run))[0]).toContain("not UTF-8");
  });

  it("a plan that does not fit in memory, as a result with its numbers", async () => {
    const set = ["model.layers=64", "model.hidden=8192", "model.heads=64"].flatMap((s) => [
      "--set",
      s,
    ]);
    const lines = await refused(command, run, ...set);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(
      /^tiny: pipeline rank \d needs .* GiB .*but cpu-core has 1\.86\d GiB$/,
    );
  });
});

it.each(["simulate", "estimate"])(
  "%s --json says why a plan cannot run in the form of the library",
  async (command) => {
    const set = ["model.layers=64", "model.hidden=8192", "model.heads=64"].flatMap((s) => [
      "--set",
      s,
    ]);
    const { code, stdout, stderr } = await invoke([command, run, "--json", ...set]);
    expect(code).toBe(2);
    expect(JSON.parse(stdout)).toMatchObject({
      ok: false,
      reason: expect.stringContaining("needs"),
    });
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  },
);

it("train refuses a run without text, and one on other hardware", async () => {
  expect(await refused("train", run, "--set", "data=null", "--set", "model.vocab=50")).toEqual([
    `${run}: data: required to train: path of the text`,
  ]);
  const set = ["--set", "cluster.host=dgx-h100"];
  expect((await refused("train", run, ...set))[0]).toContain(
    "the embedded engine trains on this machine",
  );
});

it("train refuses texts too short for one step", async () => {
  for (const name of ["a", "b", "c", "d"]) writeFileSync(join(folder, "texts", `${name}.txt`), "x");
  expect((await refused("train", run))[0]).toMatch(
    /^tiny: the text to train on: 3 tokens hold no sample of sequence\(8\)/,
  );
});

it.each(["train", "simulate"])("%s refuses a folder it cannot write to", async (command) => {
  writeFileSync(join(folder, "file"), "");
  const { code, stderr } = await invoke([command, run, "--out", join(folder, "file", "x")]);
  expect(code).toBe(2);
  expect(stderr).toMatch(/cannot write .*file\/x/);
});

// There every mkdir answers "no such file", and Node's recursive one tries for ever.
it.runIf(process.platform === "linux").each(["train", "simulate"])(
  "%s refuses a folder in /proc before anything is timed",
  async (command) => {
    const parts = { ...fakeParts(), measureOperators: () => Promise.reject(new Error("timed")) };
    const { code, stdout, stderr } = await invoke([command, run, "--out", "/proc/x"], { parts });
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(/^--out: cannot write \/proc\/x: ENOENT.*\n$/);
  },
);

it("what the system refuses later is one line, and code 1", async () => {
  const full = Object.assign(new Error("ENOSPC: no space left on device, write"), {
    code: "ENOSPC",
    syscall: "write",
  });
  const parts = { ...fakeParts(), measureOperators: () => Promise.reject(full) };
  const { code, stderr } = await invoke(["simulate", run, "--out", folder], { parts });
  expect([code, stderr]).toEqual([1, "ENOSPC: no space left on device, write\n"]);
});

it("train refuses a plan that the engine does not carry out, and prints nothing before", async () => {
  expect(await refused("train", run, "--set", "plan.dropout=0.1")).toEqual([
    "the embedded engine does not carry out dropout 0.1; use dropout 0",
  ]);
});
