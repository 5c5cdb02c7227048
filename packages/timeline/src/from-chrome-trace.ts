/** Chrome trace JSON back to a timeline: what `toChromeTrace` wrote, to the nanosecond. */
import { TimelineBuilder } from "./builder.ts";
import { type Lane, type SpanKind, lanes, spanKinds } from "./kind.ts";
import { type Slice, isRecord, numberOf, readTraceEvents } from "./trace-events.ts";
import { tickTime, ticksPerMicrosecond } from "./trace-ticks.ts";
import type { Timeline } from "./timeline.ts";

const kinds: ReadonlySet<string> = new Set(spanKinds);

/**
 * The timeline in a Chrome trace, from its text or parsed. A trace of another tool is read as far as
 * it can be: a process is a rank (its number, or the one in its name), a thread whose name begins with
 * a lane is that lane and any other "host", a category that is no kind is "other".
 * @throws TriremeError `TRACE` when it is no trace.
 */
export function fromChromeTrace(trace: unknown): Timeline {
  const { slices, processNames, threadNames, header } = readTraceEvents(trace);
  const other = isRecord(header["otherData"]) ? header["otherData"] : {};
  const builder = new TimelineBuilder({
    capacity: slices.length,
    ranks: numberOf(other["ranks"]) ?? 0,
  });
  const own = other["schema"] === "trireme.timeline";
  const seconds = (microseconds: number): number =>
    own ? tickTime(Math.round(microseconds * ticksPerMicrosecond)) : nearest(microseconds);
  const ranks = new Map<number | string, number>();
  const rankOf = (process: number | string): number => {
    let rank = ranks.get(process);
    if (rank === undefined) {
      const named = /^rank (\d+)$/.exec(processNames.get(String(process)) ?? "");
      rank = named === null ? ranks.size : Number(named[1]);
      ranks.set(process, rank);
    }
    return rank;
  };
  for (const slice of slices) {
    const { args } = slice;
    builder.add({
      rank: rankOf(slice.process),
      lane: laneOf(threadNames.get(`${slice.process} ${slice.thread}`) ?? ""),
      kind: isKind(slice.category) ? slice.category : "other",
      action: slice.name,
      start: seconds(slice.start),
      end: seconds(slice.end),
      step: numberOf(args["step"]),
      stage: numberOf(args["stage"]),
      microbatch: numberOf(args["microbatch"]),
      bytes: numberOf(args["bytes"]),
      flops: numberOf(args["flops"]),
    });
  }
  slices.forEach((slice, i) => {
    for (const parent of parentsOf(slice)) builder.link(i, parent);
  });
  return builder.finish();
}

function parentsOf({ args }: Slice): number[] {
  const parents: unknown = args["parents"];
  if (!Array.isArray(parents)) return [];
  return parents.flatMap((parent) => numberOf(parent) ?? []);
}

/** Microseconds to seconds, rounded to nanoseconds. */
function nearest(microseconds: number): number {
  return Math.round(microseconds * 1000) / 1e9;
}

function laneOf(name: string): Lane {
  return lanes.find((lane) => name === lane || name.startsWith(`${lane} `)) ?? "host";
}

function isKind(category: string): category is SpanKind {
  return kinds.has(category);
}
