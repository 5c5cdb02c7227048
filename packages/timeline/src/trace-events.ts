/** Reads the events of a trace in the Trace Event Format: slices, and the names of processes and threads. */
import { TriremeError } from "@trireme/core";

/** A slice: a complete event, or a begin and its end. Times in microseconds as written. */
export interface Slice {
  readonly name: string;
  readonly category: string;
  readonly process: number | string;
  readonly thread: number | string;
  readonly start: number;
  readonly end: number;
  readonly args: Readonly<Record<string, unknown>>;
}

/** What a trace file holds. */
export interface TraceEvents {
  /**
   * In the order of the file; a begin and its end stand where the begin does. What has begun and does
   * not end lasts to the last end in the trace.
   */
  readonly slices: readonly Slice[];
  /** Names by process, and by process and thread with a blank between. */
  readonly processNames: ReadonlyMap<string, string>;
  readonly threadNames: ReadonlyMap<string, string>;
  /** What stands beside the events in the object form; empty for a bare array. */
  readonly header: Readonly<Record<string, unknown>>;
}

/**
 * The events of a trace, from its text or parsed.
 * @throws TriremeError `TRACE` when it is no JSON, has no events, or an event has no time.
 */
export function readTraceEvents(trace: unknown): TraceEvents {
  const root = typeof trace === "string" ? parse(trace) : trace;
  const header = isRecord(root) ? root : {};
  const events = Array.isArray(root) ? root : header["traceEvents"];
  if (!Array.isArray(events)) {
    throw new TriremeError(
      "TRACE",
      "no trace: give an array of events, or an object with traceEvents",
    );
  }
  const slices: Slice[] = [];
  const processNames = new Map<string, string>();
  const threadNames = new Map<string, string>();
  const open = new Map<string, { at: number; slice: Slice }[]>();
  events.forEach((event: unknown, at) => {
    if (!isRecord(event)) throw new TriremeError("TRACE", `event ${at} is no object`);
    const process = identifier(event["pid"]);
    const thread = identifier(event["tid"]);
    const key = `${process} ${thread}`;
    const args = isRecord(event["args"]) ? event["args"] : {};
    switch (event["ph"]) {
      case "M":
        if (event["name"] === "process_name") processNames.set(String(process), text(args["name"]));
        if (event["name"] === "thread_name") threadNames.set(key, text(args["name"]));
        break;
      case "X": {
        const start = time(event["ts"], "ts", at);
        const end = ending(start, start + time(event["dur"] ?? 0, "dur", at), at);
        slices.push({
          name: text(event["name"]),
          category: text(event["cat"]),
          process,
          thread,
          start,
          end,
          args,
        });
        break;
      }
      case "B": {
        const start = time(event["ts"], "ts", at);
        const slice = {
          name: text(event["name"]),
          category: text(event["cat"]),
          process,
          thread,
          start,
          end: start,
          args,
        };
        const stack = open.get(key);
        const entry = { at: slices.push(slice) - 1, slice };
        if (stack === undefined) open.set(key, [entry]);
        else stack.push(entry);
        break;
      }
      case "E": {
        const begun = open.get(key)?.pop();
        if (begun === undefined)
          throw new TriremeError("TRACE", `event ${at} ends what has not begun`);
        slices[begun.at] = {
          ...begun.slice,
          end: ending(begun.slice.start, time(event["ts"], "ts", at), at),
          args: { ...begun.slice.args, ...args },
        };
        break;
      }
      default:
      // Flows, counters, instants: nothing that takes time.
    }
  });
  const last = slices.reduce((end, slice) => Math.max(end, slice.end), -Infinity);
  for (const stack of open.values()) {
    for (const { at, slice } of stack) slices[at] = { ...slice, end: last };
  }
  return { slices, processNames, threadNames, header };
}

function ending(start: number, end: number, at: number): number {
  if (end >= start) return end;
  throw new TriremeError("TRACE", `event ${at} ends at ${end} us, before its start at ${start} us`);
}

/** Whether a value is an object with named fields. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A finite number, or undefined. Numbers in quotes count: some tracers write them so. */
export function numberOf(value: unknown): number | undefined {
  const n = typeof value === "string" && value !== "" ? Number(value) : value;
  return typeof n === "number" && Number.isFinite(n) ? n : undefined;
}

/** A byte order mark is dropped, and an array may lack its end: the format allows it, for runs that die. */
function parse(json: string): unknown {
  const body = json.startsWith("\ufeff") ? json.slice(1) : json;
  try {
    return JSON.parse(body);
  } catch (cause) {
    if (/^\s*\[/.test(body) && /[,}]\s*$/.test(body)) {
      try {
        return JSON.parse(`${body.replace(/,\s*$/, "")}]`);
      } catch {
        // It lacks more than its end: the first error tells.
      }
    }
    throw new TriremeError("TRACE", `the trace is no JSON: ${String(cause)}`, { cause });
  }
}

function identifier(value: unknown): number | string {
  return typeof value === "number" || typeof value === "string" ? value : 0;
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function time(value: unknown, field: string, at: number): number {
  const n = numberOf(value);
  if (n === undefined) {
    throw new TriremeError(
      "TRACE",
      `event ${at} has ${field} ${JSON.stringify(value)}: give microseconds`,
    );
  }
  return n;
}
