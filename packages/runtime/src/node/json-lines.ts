/** Events of a run as lines of JSON. */
import { closeSync, fstatSync, openSync, readSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type { RunEvent } from "../event.ts";
import { fileError } from "./file-storage.ts";
import { makeDirectorySync } from "./make-directory.ts";

/** Where the events of a run go; `record` is what `RunLoopOptions.on` takes. */
export interface MetricSink {
  /** Takes an event in. */
  record(event: RunEvent): void;
  /** Ends it, with all that was recorded on its way out. */
  close(): Promise<void>;
}

/** An event as a line: when it was written, and no timeline, which would dwarf everything else. */
export function lineOf(event: RunEvent, time: Date): string {
  const stamp = { time: time.toISOString() };
  if (event.kind !== "step") return `${JSON.stringify({ ...stamp, ...event })}\n`;
  const { timeline: _, ...rest } = event;
  const tokensPerSecond = event.tokens / event.seconds;
  return `${JSON.stringify({ ...stamp, ...rest, tokensPerSecond })}\n`;
}

/**
 * Appends events to a file, which is made with the directories above it; a line is in the file when
 * `record` returns. A line that a crash cut short is ended first, so that it takes no other with it.
 * @throws TriremeError "FILE" where it cannot be written.
 */
export function jsonLinesFile(path: string): MetricSink {
  const attempt = <T>(act: () => T): T => {
    try {
      return act();
    } catch (error) {
      throw fileError(`write ${path}`, error);
    }
  };
  let file: number | undefined = attempt(() => {
    makeDirectorySync(dirname(path));
    const opened = openSync(path, "a+");
    if (endsWithinLine(opened)) writeFileSync(opened, "\n");
    return opened;
  });
  return {
    record(event) {
      attempt(() => {
        if (file === undefined) throw new Error("it was closed");
        // All of it: `writeSync` may write a part, and say so in what it returns.
        writeFileSync(file, lineOf(event, new Date()));
      });
    },
    close() {
      if (file !== undefined) closeSync(file);
      file = undefined;
      return Promise.resolve();
    },
  };
}

/** Whether a file has a last line that was not ended. */
function endsWithinLine(file: number): boolean {
  const { size } = fstatSync(file);
  const last = new Uint8Array(1);
  return size > 0 && readSync(file, last, 0, 1, size - 1) === 1 && last[0] !== 0x0a;
}
