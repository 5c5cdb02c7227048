/** Records a trace with PyTorch where Python has it (`PYTHON` names the interpreter): takes seconds. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { fromKineto, totals } from "@trireme/timeline";

const python = process.env["PYTHON"] ?? "python3";
const hasTorch = spawnSync(python, ["-c", "import torch.distributed"]).status === 0;

interface Average {
  readonly key: string;
  readonly count: number;
  readonly total: number;
}

test.skipIf(!hasTorch)(
  "traces that PyTorch records now have the counts and times of its key averages",
  { timeout: 120_000 },
  () => {
    const directory = mkdtempSync(join(tmpdir(), "kineto-"));
    try {
      const script = fileURLToPath(new URL("../vectors/kineto-gloo.py", import.meta.url));
      const run = spawnSync(python, [script, directory], { encoding: "utf8" });
      expect([run.status, run.status === 0 ? "" : run.stderr]).toEqual([0, ""]);
      for (const rank of [0, 1]) {
        const file = (name: string): string =>
          readFileSync(join(directory, `kineto-gloo-rank${rank}${name}.json`), "utf8");
        const trace = fromKineto(file(""));
        expect([trace.rank, trace.ranks]).toEqual([rank, 2]);
        const averages: Average[] = JSON.parse(file("-averages"));
        const ours = new Map(totals(trace.timeline, "action").map((row) => [row.value, row]));
        expect(ours.size).toBe(averages.length);
        for (const { key, count, total } of averages) {
          expect([key, ours.get(key)?.spans]).toEqual([key, count]);
          // Starts and ends are rounded to nanoseconds each: at most 1 ns a span.
          expect(Math.abs(ours.get(key)!.time - total / 1e6)).toBeLessThanOrEqual(count * 1.01e-9);
        }
      }
    } finally {
      rmSync(directory, { recursive: true });
    }
  },
);
