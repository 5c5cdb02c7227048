import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { widest } from "./capture.ts";
import { invoke, writeRun } from "./invoke.ts";

const megascale = new URL("../../../examples/gpt3-175b-megascale.yaml", import.meta.url).pathname;
const llama = new URL("../../../examples/llama3-8b-h100.yaml", import.meta.url).pathname;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "trireme-estimate-"));
});
afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

interface EstimateJson {
  readonly ok: boolean;
  readonly step: number;
  readonly tokensPerSecond: number;
  readonly breakdown: Readonly<Record<string, number>>;
}

function parse(stdout: string): EstimateJson {
  return JSON.parse(stdout);
}

describe("estimate", () => {
  it("prints what a step takes of the power of devices and site", async () => {
    const { stdout } = await invoke(["estimate", megascale]);
    // An A100 under its limit of 400 W.
    expect(/a device +([\d.]+) W/.exec(stdout)?.[1]).toSatisfy(
      (watts: string) => Number(watts) > 300 && Number(watts) <= 400,
    );
    expect(stdout).toMatch(/site +[\d.]+ kW/);
    expect(stdout).toMatch(/a token +[\d.]+ J/);
  });

  it("prints a breakdown whose parts sum to the step", async () => {
    const { code, stdout } = await invoke(["estimate", megascale, "--json"]);
    expect(code).toBe(0);
    const { ok, step, breakdown } = parse(stdout);
    expect(ok).toBe(true);
    const sum = Object.values(breakdown).reduce((a, b) => a + b, 0);
    // One rounding a part.
    expect(sum / step).toBeCloseTo(1, 12);
  });

  it("is within 20 % of every published iteration time of the MegaScale baseline", async () => {
    // Table 2 of arXiv 2402.15627, rows of Megatron-LM; the tolerance is the project's goal.
    const rows = [
      [32, 768, 40],
      [64, 768, 21.2],
      [96, 768, 15.2],
      [128, 768, 11.9],
      [384, 6144, 29.02],
      [768, 6144, 14.78],
      [1024, 6144, 12.24],
      [1536, 6144, 8.57],
    ] as const;
    for (const [hosts, batch, published] of rows) {
      const set = ["--set", `cluster.hosts=${hosts}`, "--set", `plan.globalBatch=${batch}`];
      const { step, tokensPerSecond } = parse(
        (await invoke(["estimate", megascale, "--json", ...set])).stdout,
      );
      expect(Math.abs(step / published - 1)).toBeLessThan(0.2);
      expect(tokensPerSecond).toBeCloseTo((batch * 2048) / step, 6);
    }
  });

  it.each([80, 120])("fits in %i columns, with MFU's convention", async (columns) => {
    for (const run of [megascale, llama, writeRun(folder)]) {
      const { code, stdout } = await invoke(["estimate", run], { columns });
      expect(code).toBe(0);
      expect(widest(stdout)).toBeLessThanOrEqual(columns);
      expect(stdout).toMatch(/MFU +\d+\.\d %/);
      expect(stdout).toContain("model FLOPs, full attention");
    }
  });

  it("prices a run on this machine by timing its operators", async () => {
    const { stdout } = await invoke(["estimate", writeRun(folder)], { columns: 120 });
    expect(stdout).toMatch(/iteration .* from \d+ operators timed here/);
    expect(stdout).toContain("this one: 2 cores, shared by 4 ranks");
  });

  it("takes overrides, the last of equals", async () => {
    const run = writeRun(folder);
    const one = parse((await invoke(["estimate", run, "--json"])).stdout);
    const set = ["--set", "plan.globalBatch=32", "--set", "plan.globalBatch=16"];
    const two = parse((await invoke(["estimate", run, "--json", ...set])).stdout);
    expect(two.step).toBeGreaterThan(one.step * 1.3);
    expect(two.step).toBeLessThan(one.step * 2.1);
  });
});
