/**
 * The folder of a run: `run.json` (the run, resolved), `metrics.jsonl` (one event a line),
 * `trace.json` (a few steps for Perfetto and speedscope), `checkpoints/`.
 */
import type { ResolvedRun } from "@trireme/run";
import { type Timeline, toChromeTrace } from "@trireme/timeline";
import { closeSync, existsSync, openSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { RunEvent } from "../event.ts";
import { fileError } from "./file-storage.ts";
import { lineOf } from "./json-lines.ts";
import { makeDirectorySync } from "./make-directory.ts";

/** Writes what a run leaves behind. */
export interface RunFolder {
  readonly directory: string;
  /** Where checkpoints go unless the run says otherwise. */
  readonly checkpoints: string;
  /**
   * Appends an event to `metrics.jsonl`; a line is in the file when this returns. Only the start says
   * which lines of an earlier run stay: what comes before it is written with it.
   */
  record(event: RunEvent): void;
  /** Writes a timeline as Chrome JSON to a file of the folder, such as `trace.json`; returns its path. */
  writeTrace(file: string, timeline: Timeline, name: string): string;
  /** Closes `metrics.jsonl`. */
  close(): void;
}

/**
 * Makes the folder and writes `run.json`. Metrics of an earlier, interrupted run in the same folder
 * stay up to the step at which this one goes on.
 * @throws TriremeError "FILE" where the folder cannot be written.
 */
export function runFolder(directory: string, run: ResolvedRun): RunFolder {
  const metrics = join(directory, "metrics.jsonl");
  let stream: number | undefined;
  let early = "";
  attempt(`write the run folder ${directory}`, () => {
    makeDirectorySync(directory);
    writeFileSync(join(directory, "run.json"), `${JSON.stringify(run, undefined, 2)}\n`);
  });
  const open = (from: number): number => {
    const kept = existsSync(metrics) ? linesBefore(readFileSync(metrics, "utf8"), from) : "";
    // In place of the old one at once: a crash, or a full disk, must not take the lines that stay.
    const fresh = `${metrics}.new`;
    writeFileSync(fresh, kept);
    renameSync(fresh, metrics);
    return openSync(metrics, "a");
  };
  return {
    directory,
    checkpoints: join(directory, "checkpoints"),
    record(event) {
      attempt(`write ${metrics}`, () => {
        early += lineOf(event, new Date());
        if (event.kind === "start") stream ??= open(event.from);
        if (stream === undefined) return;
        const text = early;
        early = "";
        writeFileSync(stream, text);
      });
    },
    writeTrace(file, timeline, name) {
      const path = join(directory, file);
      attempt(`write ${path}`, () => writeFileSync(path, toChromeTrace(timeline, { name })));
      return path;
    },
    close() {
      if (stream !== undefined) closeSync(stream);
      stream = undefined;
    },
  };
}

function attempt(what: string, act: () => void): void {
  try {
    act();
  } catch (error) {
    throw fileError(what, error);
  }
}

/** The lines that a run going on at step `from` does not repeat. */
function linesBefore(text: string, from: number): string {
  if (from === 0) return "";
  const lines = text.split("\n").filter((line) => isBefore(line, from));
  return lines.map((line) => `${line}\n`).join("");
}

/** A step event counts from 0, the others say how many steps were done. */
function isBefore(line: string, from: number): boolean {
  let event: unknown;
  try {
    event = JSON.parse(line);
  } catch {
    // The end of a line that a crash cut short.
    return false;
  }
  if (typeof event !== "object" || event === null) return false;
  const { kind, step }: { kind?: unknown; step?: unknown } = event;
  return typeof step !== "number" || (kind === "step" ? step < from : step <= from);
}
