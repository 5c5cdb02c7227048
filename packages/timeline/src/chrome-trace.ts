/**
 * A timeline as Chrome trace JSON (the "Trace Event Format", object form): complete events with
 * times in microseconds, one process a rank, one thread a lane, and arrows between ranks. Perfetto
 * and speedscope open it.
 */
import { TriremeError } from "@trireme/core";
import { lanes, spanKinds } from "./kind.ts";
import { ticks, ticksPerMicrosecond } from "./trace-ticks.ts";
import { tracks } from "./tracks.ts";
import type { Timeline } from "./timeline.ts";

/** How a trace is written. */
export interface ChromeTraceOptions {
  /** Name of the trace; "trireme" when left out. */
  readonly name?: string;
}

/** Longest string that every engine can hold. */
const longest = 2 ** 29 - 24;

/**
 * Chrome trace JSON of all spans. Times are rounded to nanoseconds (and written as the next multiple
 * of 1/1024 µs, see trace-ticks.ts) and count from the origin of the timeline. Spans of one lane that overlap without nesting go to threads "lane 2", "lane 3", …,
 * since viewers draw a thread as a stack. What else a span has is in `args`, its parents as positions
 * of events; parents on other ranks are drawn as flows.
 * @throws TriremeError `TRACE_SIZE` above 2^29 - 24 characters (some three million spans).
 */
export function toChromeTrace(t: Timeline, options: ChromeTraceOptions = {}): string {
  const parts: string[] = [];
  let length = 0;
  for (const piece of chromeTracePieces(t, options)) {
    parts.push(piece);
    length += piece.length;
    if (length > longest) {
      throw new TriremeError(
        "TRACE_SIZE",
        `a trace of ${t.length} spans has more than ${longest} characters: write it piece by piece with chromeTracePieces`,
      );
    }
  }
  return parts.join("");
}

/** The same text in pieces of some thousand spans, to be written one after the other. */
export function* chromeTracePieces(
  t: Timeline,
  options: ChromeTraceOptions = {},
): Generator<string> {
  const { thread, threads, start, end } = tracks(t, ticks);
  const name = JSON.stringify(options.name ?? "trireme");
  yield `{"displayTimeUnit":"ms","otherData":{"name":${name},"schema":"${t.schema}","version":${t.version},"ranks":${t.ranks}},"traceEvents":[\n`;
  const events: string[] = [];
  let lastRank = -1;
  for (const { rank, lane, depth, id } of threads) {
    if (rank !== lastRank) {
      events.push(
        metadata("process_name", rank, 0, `"name":"rank ${rank}"`),
        metadata("process_sort_index", rank, 0, `"sort_index":${rank}`),
      );
      lastRank = rank;
    }
    const label = depth === 0 ? lanes[lane]! : `${lanes[lane]!} ${depth + 1}`;
    events.push(
      metadata("thread_name", rank, id, `"name":"${label}"`),
      metadata("thread_sort_index", rank, id, `"sort_index":${id}`),
    );
  }
  const names = t.actions.map((action) => JSON.stringify(action));
  let separator = "";
  let flows = 0;
  for (let i = 0; i < t.length; i++) {
    const place = `"pid":${t.rank[i]},"tid":${thread[i]},"ts":`;
    events.push(
      `{"ph":"X","name":${names[t.action[i]!]},"cat":"${spanKinds[t.kind[i]!]}",${place}${microseconds(start[i]!)},"dur":${microseconds(end[i]! - start[i]!)},"args":{${details(t, i)}}}`,
    );
    for (let e = t.parentsAt[i]!; e < t.parentsAt[i + 1]!; e++) {
      const p = t.parents[e]!;
      if (t.rank[p] === t.rank[i] || start[p]! > start[i]!) continue;
      // The arrow leaves within the parent's slice: at its end, or at its start when both overlap.
      const leaves = end[p]! <= start[i]! ? Math.max(start[p]!, end[p]! - 1) : start[p]!;
      const head = `"cat":"dependency","name":"dependency","id":${++flows}`;
      events.push(
        `{"ph":"s",${head},"pid":${t.rank[p]},"tid":${thread[p]},"ts":${microseconds(leaves)}}`,
        `{"ph":"f","bp":"e",${head},${place}${microseconds(start[i]!)}}`,
      );
    }
    if (events.length >= 4096) {
      yield separator + events.join(",\n");
      separator = ",\n";
      events.length = 0;
    }
  }
  if (events.length > 0) yield separator + events.join(",\n");
  yield "\n]}\n";
}

function microseconds(n: number): number {
  return n / ticksPerMicrosecond;
}

function metadata(name: string, pid: number, tid: number, args: string): string {
  return `{"ph":"M","name":"${name}","pid":${pid},"tid":${tid},"args":{${args}}}`;
}

function details(t: Timeline, i: number): string {
  let out = "";
  if (t.step[i]! >= 0) out += `"step":${t.step[i]},`;
  if (t.stage[i]! >= 0) out += `"stage":${t.stage[i]},`;
  if (t.microbatch[i]! >= 0) out += `"microbatch":${t.microbatch[i]},`;
  if (t.bytes[i]! > 0) out += `"bytes":${t.bytes[i]},`;
  if (t.flops[i]! > 0) out += `"flops":${t.flops[i]},`;
  const [first, last] = [t.parentsAt[i]!, t.parentsAt[i + 1]!];
  if (last > first) out += `"parents":[${t.parents.subarray(first, last).join(",")}],`;
  return out.slice(0, -1);
}
