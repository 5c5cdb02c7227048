/** What `train` prints before the first step and after the last. */
import { type Seconds, formatCount, formatSeconds } from "@trireme/core";
import type { ResolvedRun } from "@trireme/run";
import type { TrainingResult } from "../commands/train.ts";
import type { LoadedRun } from "../load-run.ts";
import type { Terminal } from "../terminal.ts";
import { type Field, fields, heading, wrap } from "./fields.ts";
import { predictionFields } from "./prediction-fields.ts";
import { runFields } from "./run-fields.ts";

/** The run and its predicted step. */
export function printBefore(
  terminal: Terminal,
  loaded: LoadedRun,
  step: Seconds,
  measured: string | undefined,
): void {
  const { run } = loaded;
  terminal.out(heading(terminal, `${run.name}: training for ${run.steps} steps`).trimStart());
  const how = measured === undefined ? "" : `, ${measured}`;
  const prediction = { label: "prediction", value: `${formatSeconds(step)} a step${how}` };
  terminal.out(fields(terminal, [...runFields(loaded), prediction]));
  terminal.out("\n");
}

/** What came of it. */
export function printAfter(terminal: Terminal, run: ResolvedRun, result: TrainingResult): void {
  terminal.out(heading(terminal, "result").trimStart());
  terminal.out(fields(terminal, resultFields(run, result)));
  if (result.sample !== undefined) {
    terminal.out(heading(terminal, "sample"));
    terminal.out(sampleLines(terminal, result.sample));
  }
  terminal.out(heading(terminal, "files"));
  terminal.out(fields(terminal, fileFields(result)));
}

function resultFields(run: ResolvedRun, result: TrainingResult): readonly Field[] {
  const { from, step, reason, firstLoss, lastLoss, validationLoss, stepSeconds, tokens } = result;
  if (stepSeconds.length === 0) {
    const value =
      reason === "done"
        ? `all ${from} steps were done before; nothing to do`
        : `none: stopped before step ${from + 1} of ${run.steps}`;
    return [{ label: "steps", value }];
  }
  const unit = run.data?.tokenizer === "character" ? "a character" : "a byte";
  const validation =
    validationLoss === undefined ? "" : `; validation ${validationLoss.toFixed(3)}`;
  const seconds = stepSeconds.reduce((sum, t) => sum + t, 0);
  const since = from === 0 ? `${step} steps` : `steps ${from + 1} to ${step}`;
  const loss = `${firstLoss.toFixed(3)} → ${lastLoss.toFixed(3)} nats ${unit} in ${since}${validation}`;
  return [
    { label: "loss", value: loss },
    {
      label: "speed",
      value: `${formatCount(tokens / seconds)} tokens/s, ${formatSeconds(seconds)} in all`,
    },
    ...(result.prediction === undefined ? [] : predictionFields(result.prediction)),
  ];
}

/** Generated text, line for line, indented, wrapped. */
function sampleLines(terminal: Terminal, sample: string): string {
  const printable = sample.replaceAll(/[^\P{C}\n]/gu, "·");
  const lines = printable
    .split("\n")
    .flatMap((line) => wrap(line, Math.min(terminal.columns, 100) - 2));
  return lines.map((line) => `  ${line}`.trimEnd()).join("\n") + "\n";
}

function fileFields({ files }: TrainingResult): readonly Field[] {
  const { folder, trace, prediction, checkpoints } = files;
  const traces =
    trace === undefined ? [] : [{ label: "trace", value: trace, note: "the last steps, measured" }];
  return [
    { label: "run folder", value: folder },
    ...traces,
    { label: "", value: prediction, note: "the predicted step; open both in ui.perfetto.dev" },
    {
      label: "checkpoints",
      value: checkpoints,
      note: "safetensors; --out goes on from the newest",
    },
  ];
}
