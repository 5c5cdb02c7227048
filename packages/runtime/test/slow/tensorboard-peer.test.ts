/**
 * TensorBoard reads what is written here. Optional: needs Python (`PYTHON` names the interpreter) with the
 * package tensorboard.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TimelineBuilder } from "@trireme/timeline";
import { tensorBoardFile } from "@trireme/runtime/tensorboard";
import { expect, test } from "vitest";

const python = process.env["PYTHON"] ?? "python3";
const found = spawnSync(python, ["-c", "import tensorboard"], { encoding: "utf8" });
const skipped = found.status !== 0;
if (skipped) console.warn(`skipped: ${python} lacks tensorboard; pip install tensorboard`);

const script = `
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1])
events.Reload()
print(json.dumps({tag: [[s.step, s.value] for s in events.Scalars(tag)] for tag in events.Tags()["scalars"]}))
`;

test.skipIf(skipped)("TensorBoard reads every scalar of a file written here", async () => {
  const directory = mkdtempSync(join(tmpdir(), "trireme-tensorboard-"));
  try {
    const sink = tensorBoardFile(directory);
    const losses = [4.5, 3.25, 0.1];
    for (const [step, loss] of losses.entries()) {
      const timeline = new TimelineBuilder().finish();
      const rest = { tokens: 64, seconds: 0.5, learningRate: 1e-3, gradientNorm: 1, timeline };
      sink.record({ kind: "step", step, loss, ...rest });
    }
    sink.record({ kind: "evaluate", step: 3, loss: 2, tokens: 64 });
    await sink.close();
    const read = spawnSync(python, ["-c", script, directory], { encoding: "utf8" });
    expect(read.stderr).not.toContain("Error");
    const scalars: unknown = JSON.parse(read.stdout.trim().split("\n").at(-1)!);
    expect(scalars).toMatchObject({
      "train/loss": losses.map((loss, step) => [step + 1, Math.fround(loss)]),
      "train/validation_loss": [[3, 2]],
      "train/tokens_per_second": losses.map((_, step) => [step + 1, 128]),
    });
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
