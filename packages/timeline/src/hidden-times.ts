/** How much of each span computing on the same rank hides. */
import type { Seconds } from "@trireme/core";
import { categoryOf, spanKinds } from "./kind.ts";
import { rankOrder } from "./span-order.ts";
import type { Timeline } from "./timeline.ts";

const computes = spanKinds.map((kind) => categoryOf(kind) === "compute");

/** By span: the part of its time in which its rank computed; of a span that computes, all of it. */
export function hiddenTimes(t: Timeline): Float64Array {
  const hidden = new Float64Array(t.length);
  const start = (a: number, b: number): number => t.start[a]! - t.start[b]!;
  const all = rankOrder(t, start);
  for (let r = 0; r + 1 < all.at.length; r++) {
    const spans = all.order.subarray(all.at[r], all.at[r + 1]);
    // Where the rank computes, as intervals that do not touch, with the time computed before each.
    const starts = new Float64Array(spans.length);
    const ends = new Float64Array(spans.length);
    const before = new Float64Array(spans.length);
    let last = -1;
    for (const i of spans) {
      if (!computes[t.kind[i]!]!) continue;
      if (last >= 0 && t.start[i]! <= ends[last]!) {
        ends[last] = Math.max(ends[last]!, t.end[i]!);
      } else {
        last++;
        before[last] = last === 0 ? 0 : before[last - 1]! + ends[last - 1]! - starts[last - 1]!;
        starts[last] = t.start[i]!;
        ends[last] = t.end[i]!;
      }
    }
    const computedUntil = (time: Seconds): Seconds => {
      let [low, high] = [0, last + 1];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (starts[middle]! <= time) low = middle + 1;
        else high = middle;
      }
      const k = low - 1;
      return k < 0 ? 0 : before[k]! + Math.min(time, ends[k]!) - starts[k]!;
    };
    for (const i of spans) hidden[i] = computedUntil(t.end[i]!) - computedUntil(t.start[i]!);
  }
  return hidden;
}
