/** A trace as a directory: `trace.json`, and for each rank its events and its data. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { TriremeError } from "@trireme/core";
import type { Trace, TraceEvent } from "./trace.ts";
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
  const shards = Array.from({ length: head.ranks }, (_, rank) => {
    const { events, data } = shardFiles(directory, rank);
    const lines = read(directory, events).split("\n").filter(Boolean);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- every call is checked when it is replayed
    return { rank, events: lines.map((line) => JSON.parse(line) as TraceEvent), data };
  });
  return { shards, seed: head.seed };
}

function isHead(value: unknown): value is Head {
  return (
    typeof value === "object" &&
    value !== null &&
    "version" in value &&
    value.version === version &&
    "ranks" in value &&
    "seed" in value
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
    throw new TriremeError(
      "TRACE",
      `${directory} has no ${file.slice(directory.length + 1)} that can be read; record the run there with the option record`,
      { cause },
    );
  }
}
