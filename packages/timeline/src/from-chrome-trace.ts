/** Chrome trace JSON back to a timeline: what `toChromeTrace` wrote, to the nanosecond. */
import { TimelineBuilder } from "./builder.ts";
import { type Lane, type SpanKind, lanes, spanKinds } from "./kind.ts";
import { type Slice, isRecord, numberOf, readTraceEvents } from "./trace-events.ts";
import { tickTime, ticksPerMicrosecond } from "./trace-ticks.ts";
import type { Timeline } from "./timeline.ts";

const kinds: ReadonlySet<string> = new Set(spanKinds);

/**
 * The timeline in a Chrome trace, from its text or parsed. A trace of another tool is read as far as
 * it can be: a process named "rank n" is that rank and any other the lowest that is free, in order of
 * appearance; a thread whose name begins with a lane is that lane and any other "host"; a category that
 * is no kind is "other"; arguments that are no step, stage, microbatch or size are passed over.
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
  const namedRank = (process: string): number | undefined => {
    const named = /^rank (\d+)$/.exec(processNames.get(process) ?? "");
    return named === null ? undefined : Number(named[1]);
  };
  const taken = new Set([...processNames.keys()].map(namedRank));
  const ranks = new Map<number | string, number>();
  let free = 0;
  const rankOf = (process: number | string): number => {
    let rank = ranks.get(process);
    if (rank === undefined) {
      rank = namedRank(String(process));
      if (rank === undefined) {
        while (taken.has(free)) free++;
        rank = free++;
      }
      ranks.set(process, rank);
    }
    return rank;
  };
  for (const slice of slices) {
    const args = own ? slice.args : fitting(slice.args);
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
  // Positions of events are what ours writes; what others call parents is their own.
  if (own) {
    slices.forEach((slice, i) => {
      for (const parent of parentsOf(slice)) builder.link(i, parent);
    });
  }
  return builder.finish();
}

/** Of arguments that another tool wrote, those that a span can have. */
function fitting(args: Slice["args"]): Slice["args"] {
  const counts = ["step", "stage", "microbatch"];
  return Object.fromEntries(
    [...counts, "bytes", "flops"].flatMap((name) => {
      const value = numberOf(args[name]);
      const fits =
        value !== undefined &&
        value >= 0 &&
        (!counts.includes(name) || (Number.isInteger(value) && value < 2 ** 31));
      return fits ? [[name, value]] : [];
    }),
  );
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
