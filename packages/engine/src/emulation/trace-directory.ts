/** A trace as a directory: `trace.json`, and for each rank its events and its data. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { TriremeError } from "@trireme/core";
import { eventOf } from "./event-line.ts";
import type { Trace, TraceShard } from "./trace.ts";
import { shardFiles } from "./trace-sink.ts";

/** Of the format that `TraceEvent` describes. */
const version = 1;

interface Head {
  readonly version: number;
  readonly ranks: number;
  readonly seed: number;
}

/** Begins a directory: everything but the shards, which ranks write. */
export function beginTrace(directory: string, ranks: number, seed: number): void {
  mkdirSync(directory, { recursive: true });
  const head: Head = { version, ranks, seed };
  writeFileSync(join(directory, "trace.json"), `${JSON.stringify(head)}\n`);
}

/**
 * The trace in a directory; its data stays in the files. Throws `TRACE` where a file is missing or is
 * none of this format.
 */
export function readTrace(directory: string): Trace {
  const head = parse(directory, join(directory, "trace.json"));
  if (!isHead(head)) {
    throw new TriremeError(
      "TRACE",
      `${join(directory, "trace.json")} is not a trace of version ${version}; record one with the option record`,
    );
  }
  const shards: TraceShard[] = [];
  for (let rank = 0; rank < head.ranks; rank++) shards.push(readShard(directory, rank));
  return { shards, seed: head.seed };
}

function readShard(directory: string, rank: number): TraceShard {
  const { events: file, data } = shardFiles(directory, rank);
  const events = read(directory, file)
    .split("\n")
    .flatMap((line, i) => {
      if (line === "") return [];
      const event = eventOf(line);
      if (event !== undefined) return [event];
      throw new TriremeError(
        "TRACE",
        `line ${i + 1} of ${file} is not an event of a trace: ${line.slice(0, 40)}; a run that was killed leaves its last line cut: remove it, or record the run again`,
      );
    });
  if (!existsSync(data)) throw missing(directory, data);
  return { rank, events, data };
}

function isHead(value: unknown): value is Head {
  return (
    typeof value === "object" &&
    value !== null &&
    "version" in value &&
    value.version === version &&
    "ranks" in value &&
    Number.isSafeInteger(value.ranks) &&
    Number(value.ranks) > 0 &&
    "seed" in value &&
    Number.isSafeInteger(value.seed)
  );
}

function parse(directory: string, file: string): unknown {
  try {
    return JSON.parse(read(directory, file));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return undefined;
  }
}

function read(directory: string, file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw missing(directory, file, cause);
  }
}

function missing(directory: string, file: string, cause?: unknown): TriremeError {
  return new TriremeError(
    "TRACE",
    `${directory} has no ${relative(directory, file)} that can be read; record the run there with the option record`,
    { cause },
  );
}
