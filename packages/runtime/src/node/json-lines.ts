/** Events of a run as lines of JSON. */
import { closeSync, mkdirSync, openSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import type { RunEvent } from "../event.ts";
import { fileError } from "./file-storage.ts";

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
 * `record` returns.
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
    mkdirSync(dirname(path), { recursive: true });
    return openSync(path, "a");
  });
  return {
    record(event) {
      attempt(() => void writeSync(file ?? -1, lineOf(event, new Date())));
    },
    close() {
      if (file !== undefined) closeSync(file);
      file = undefined;
      return Promise.resolve();
    },
  };
}
