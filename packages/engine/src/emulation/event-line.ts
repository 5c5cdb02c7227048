/** A traced event as a line of JSON, which has no numbers but finite ones: the others are words there. */
import type { TraceEvent } from "./trace.ts";

/** No other word of an event reads so. */
const words: ReadonlyMap<unknown, number> = new Map(
  [Number.NaN, Infinity, -Infinity].map((value) => [String(value), value]),
);

const kinds: ReadonlySet<unknown> = new Set<TraceEvent["kind"]>([
  "group",
  "turn",
  "call",
  "wait",
  "reply",
]);

/** Without the end of the line. */
export function eventLine(event: TraceEvent): string {
  return JSON.stringify(event, (_, value: unknown) =>
    typeof value === "number" && !Number.isFinite(value) ? String(value) : value,
  );
}

/** The event of a line; undefined where it is none, such as one that was cut off. */
export function eventOf(line: string): TraceEvent | undefined {
  let value: unknown;
  try {
    value = JSON.parse(line, (_, part: unknown) => words.get(part) ?? part);
  } catch {
    return undefined;
  }
  return isEvent(value) ? value : undefined;
}

/** By its kind: every call is checked when it is replayed. */
function isEvent(value: unknown): value is TraceEvent {
  return typeof value === "object" && value !== null && "kind" in value && kinds.has(value.kind);
}
