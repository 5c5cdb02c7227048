import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { widest } from "./capture.ts";
import { invoke, writeRun } from "./invoke.ts";

const megascale = new URL("../../../examples/gpt3-175b-megascale.yaml", import.meta.url).pathname;
const llama = new URL("../../../examples/llama3-8b-h100.yaml", import.meta.url).pathname;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "trireme-simulate-"));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

interface TraceEvent {
  readonly ph: string;
  readonly pid: number;
  readonly ts: number;
  readonly dur: number;
}

function traceEvents(path: string): readonly TraceEvent[] {
  const { traceEvents: events }: { traceEvents: readonly TraceEvent[] } = JSON.parse(
    readFileSync(path, "utf8"),
  );
  return events.filter((event) => event.ph === "X");
}

describe("simulate", () => {
  it("prints time, speed, MFU, bubble, exposed communication, memory, a picture, and writes a trace", async () => {
    const out = join(folder, "out");
    const { code, stdout, stderr } = await invoke(["simulate", llama, "--out", out]);
    expect([code, stderr]).toEqual([0, ""]);
    const labels = [
      "iteration",
      "tokens/s",
      "MFU",
      "bubble",
      "exposed",
      "memory",
      "  weights",
      "  optimizer",
      "  activations",
      "trace",
    ];
    for (const label of labels) expect(stdout).toMatch(new RegExp(`^${label} +\\S`, "m"));
    expect(stdout).toMatch(/^ +0 [FRB]+/m);
    expect(traceEvents(join(out, "trace.json")).length).toBeGreaterThan(10);
  });

  it("writes a trace as long as the step it prints", async () => {
    const { stdout } = await invoke([
      "simulate",
      writeRun(folder),
      "--json",
      "--out",
      join(folder, "o"),
    ]);
    const { step, trace, mfuConvention }: { step: number; trace: string; mfuConvention: string } =
      JSON.parse(stdout);
    const ends = traceEvents(trace).map((event) => event.ts + event.dur);
    const starts = traceEvents(trace).map((event) => event.ts);
    // Microseconds, rounded to nanoseconds.
    expect((Math.max(...ends) - Math.min(...starts)) / 1e6).toBeCloseTo(step, 8);
    expect(new Set(traceEvents(trace).map((event) => event.pid)).size).toBe(4);
    expect(mfuConvention).toBe("model-full");
  });

  it("holds the fields of the library in its JSON, and no timeline", async () => {
    const { stdout } = await invoke(["simulate", llama, "--json", "--out", join(folder, "o")]);
    const json: Readonly<Record<string, unknown>> = JSON.parse(stdout);
    for (const key of [
      "name",
      "fingerprint",
      "step",
      "tokensPerSecond",
      "mfu",
      "bubble",
      "exposedCommunication",
      "memory",
      "fits",
      "trace",
    ]) {
      expect(json).toHaveProperty(key);
    }
    expect(json).not.toHaveProperty("timeline");
  });

  it.each([80, 120])("fits in %i columns", async (columns) => {
    for (const run of [llama, writeRun(folder)]) {
      const { stdout } = await invoke(
        ["simulate", run, "--out", "x".repeat(9)].with(3, join(folder, "o")),
        { columns },
      );
      const lines = stdout.split("\n").filter((line) => !line.includes(folder));
      expect(widest(lines.join("\n"))).toBeLessThanOrEqual(columns);
    }
  });

  it("draws eight ranks at most, and from the pipeline's warm-up on", async () => {
    const set = ["--set", "cluster.hosts=1536", "--set", "plan.globalBatch=6144"];
    const { stdout } = await invoke(["simulate", megascale, "--out", join(folder, "o"), ...set]);
    const rows = stdout.split("\n").filter((line) => /^ +\d+ [.FB><=+-]+$/.test(line));
    expect(rows).toHaveLength(8);
    expect(rows.every((row) => row.includes("F") && row.includes("B"))).toBe(true);
    expect(stdout).toContain("12288 × a100-80");
  });
});
