import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runLoop } from "@trireme/runtime";
import { fileStore, jsonLinesFile, lockDirectory, runFolder } from "@trireme/runtime/node";
import { afterEach, beforeEach, expect, it } from "vitest";
import { FakeRuntime } from "./fake-runtime.ts";
import { smallLoader, smallRun } from "./small-run.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "trireme-folder-"));
});
afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

type Line = Readonly<Record<string, unknown>>;

function parse(text: string): Line {
  const value: unknown = JSON.parse(text);
  return Object.fromEntries(Object.entries(Object(value)));
}

function metrics(): Line[] {
  const lines = readFileSync(join(root, "metrics.jsonl"), "utf8").trim().split("\n");
  return lines.map(parse);
}

async function train(signal?: AbortSignal, stopAt?: AbortController): Promise<void> {
  const run = smallRun({ checkpoint: { every: 4 } });
  const folder = runFolder(root, run);
  await runLoop({
    run,
    runtime: new FakeRuntime(),
    loader: smallLoader(),
    store: fileStore(folder.checkpoints),
    on(event) {
      folder.record(event);
      if (event.kind === "step" && event.step === 5) stopAt?.abort();
    },
    ...(signal === undefined ? {} : { signal }),
  });
  folder.close();
}

it("holds the resolved run and a line for each event", async () => {
  await train();
  const run = parse(readFileSync(join(root, "run.json"), "utf8"));
  expect(run).toMatchObject({ steps: 10, plan: { dp: 2 }, fingerprint: smallRun().fingerprint });
  const lines = metrics();
  const steps = lines.filter((line) => line["kind"] === "step");
  expect(steps.map((line) => line["step"])).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  expect(steps[0]).toMatchObject({ tokens: 64, seconds: 0.5, tokensPerSecond: 128 });
  expect(steps.every((line) => !("timeline" in line) && typeof line["time"] === "string")).toBe(
    true,
  );
  expect(lines[0]).toMatchObject({ kind: "start", from: 0 });
  expect(lines.at(-1)).toMatchObject({ kind: "stop", reason: "done" });
});

it("of a resumed run has each step once, also after a crash past its checkpoint", async () => {
  const control = new AbortController();
  await train(control.signal, control);
  // What a crash would leave: steps beyond the checkpoint, the last line cut short.
  appendFileSync(join(root, "metrics.jsonl"), '{"kind":"step","step":6}\n{"kind":"step","st');
  await train();
  const steps = metrics().filter((line) => line["kind"] === "step");
  expect(steps.map((line) => line["step"])).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
});

it("keeps the lines of an earlier run where a damaged checkpoint is passed over before the start", async () => {
  await train();
  const before = metrics();
  const folder = runFolder(root, smallRun());
  folder.record({ kind: "damaged", step: 10, reason: "a byte differs" });
  folder.record({ kind: "start", from: 8, steps: 10 });
  folder.close();
  const lines = metrics();
  const steps = lines.filter((line) => line["kind"] === "step");
  expect(steps.map((line) => line["step"])).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  expect(lines.slice(-2).map((line) => line["kind"])).toEqual(["damaged", "start"]);
  expect(lines[0]).toEqual(before[0]);
});

it("replaces the lines of an earlier run at once, and leaves no other file", async () => {
  await train();
  await train();
  expect(readdirSync(root).toSorted()).toEqual(["checkpoints", "metrics.jsonl", "run.json"]);
});

it("has a trace that is Chrome JSON", async () => {
  const folder = runFolder(root, smallRun());
  const { timeline } = await new FakeRuntime().step({
    step: 0,
    batch: smallLoader().batch(0),
    learningRate: 1,
  });
  const path = folder.writeTrace("trace.json", timeline, "small");
  const trace = parse(readFileSync(path, "utf8"));
  expect(trace["traceEvents"]).toContainEqual(expect.objectContaining({ name: "0F0", ph: "X" }));
});

it("that cannot be written is refused with its path", () => {
  writeFileSync(join(root, "file"), "");
  expect(() => runFolder(join(root, "file", "run"), smallRun())).toThrow(
    /^cannot write the run folder .*file\/run/,
  );
});

// There every mkdir answers "no such file", and Node's recursive one tries for ever.
it.runIf(process.platform === "linux")("in /proc is refused, and not tried for ever", () => {
  const folder = "/proc/trireme/run";
  expect(() => runFolder(folder, smallRun())).toThrow(/^cannot write the run folder \/proc/);
  expect(() => jsonLinesFile(`${folder}/metrics.jsonl`)).toThrow(/^cannot write \/proc/);
});

it("is locked against a second writer under any of its names, until the first lets go", async () => {
  const other = join(root, "link");
  mkdirSync(join(root, "folder"));
  symlinkSync(join(root, "folder"), other);
  const first = await lockDirectory(join(root, "folder"));
  expect(first).toBeDefined();
  expect(await lockDirectory(other)).toBeUndefined();
  const above = await lockDirectory(root);
  expect(above).toBeDefined();
  await first!();
  const second = await lockDirectory(other);
  expect(second).toBeDefined();
  await Promise.all([above!(), second!()]);
});
