/** Sums of spans by one of their properties. */
import type { SpanSum } from "./statistics.ts";
import { lanes, spanKinds } from "./kind.ts";
import type { Timeline } from "./timeline.ts";

/** What spans can be summed by. */
export type Property = "rank" | "lane" | "kind" | "action" | "step" | "stage" | "microbatch";

/** The spans that have one value of a property; -1 for those without a step, stage or microbatch. */
export interface Total extends SpanSum {
  readonly value: number | string;
}

/**
 * Number, time, bytes and FLOPs of the spans by a property, times added up without regard to what
 * overlaps. Ordered by value: numbers ascending, words as first seen.
 */
export function totals(t: Timeline, by: Property): readonly Total[] {
  const column = t[by];
  const places = new Map<number, number>();
  const rows: { value: number; spans: number; time: number; bytes: number; flops: number }[] = [];
  let [lastValue, lastPlace] = [NaN, -1];
  for (let i = 0; i < t.length; i++) {
    const value = column[i]!;
    if (value !== lastValue) {
      lastValue = value;
      lastPlace = places.get(value) ?? -1;
      if (lastPlace < 0) {
        lastPlace = rows.push({ value, spans: 0, time: 0, bytes: 0, flops: 0 }) - 1;
        places.set(value, lastPlace);
      }
    }
    const row = rows[lastPlace]!;
    row.spans++;
    row.time += t.end[i]! - t.start[i]!;
    row.bytes += t.bytes[i]!;
    row.flops += t.flops[i]!;
  }
  const name =
    by === "action" ? t.actions : by === "kind" ? spanKinds : by === "lane" ? lanes : undefined;
  if (name === undefined) return rows.sort((a, b) => a.value - b.value);
  return rows.map(({ value, spans, time, bytes, flops }) => {
    return { value: name[value]!, spans, time, bytes, flops };
  });
}
