/** A part of a timeline, as a timeline: the statistics of a step, stage, rank or lane are those of it. */
import { TimelineBuilder } from "./builder.ts";
import type { Timeline } from "./timeline.ts";

/** The spans that `choose` takes by their position, in their order; parents that stay are kept. */
export function select(t: Timeline, choose: (i: number) => boolean): Timeline {
  const place = new Int32Array(t.length).fill(-1);
  let count = 0;
  for (let i = 0; i < t.length; i++) if (choose(i)) place[i] = count++;
  const builder = new TimelineBuilder({ capacity: count, ranks: t.ranks });
  for (let i = 0; i < t.length; i++) {
    if (place[i]! < 0) continue;
    builder.addFast(
      t.rank[i]!,
      t.lane[i]!,
      t.kind[i]!,
      builder.actionCode(t.actions[t.action[i]!]!),
      t.start[i]!,
      t.end[i]!,
      t.step[i],
      t.stage[i],
      t.microbatch[i],
      t.bytes[i],
      t.flops[i],
    );
  }
  for (let i = 0; i < t.length; i++) {
    if (place[i]! < 0) continue;
    for (let e = t.parentsAt[i]!; e < t.parentsAt[i + 1]!; e++) {
      const parent = place[t.parents[e]!]!;
      if (parent >= 0) builder.link(place[i]!, parent);
    }
  }
  return builder.finish();
}
