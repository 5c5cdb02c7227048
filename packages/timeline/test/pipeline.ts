/** Spans of a small pipeline to test with: 1F1B of two ranks and two microbatches, B twice F. */
import { type Timeline, TimelineBuilder } from "@trireme/timeline";

/** Forward takes `forward` seconds, backward twice that; transfers take no time. */
export function pipeline(forward = 1): Timeline {
  const t = new TimelineBuilder();
  const f = forward;
  const add = (
    rank: number,
    kind: "forward" | "backward",
    microbatch: number,
    at: number,
  ): number =>
    t.add({
      rank,
      lane: "compute",
      kind,
      action: `${rank}${kind === "forward" ? "F" : "B"}${microbatch}`,
      start: at * f,
      end: (at + (kind === "forward" ? 1 : 2)) * f,
      step: 0,
      stage: rank,
      microbatch,
      flops: kind === "forward" ? 10 : 20,
    });
  add(0, "forward", 0, 0);
  add(0, "forward", 1, 1);
  add(1, "forward", 0, 1);
  add(1, "backward", 0, 2);
  add(1, "forward", 1, 4);
  add(1, "backward", 1, 5);
  add(0, "backward", 0, 4);
  add(0, "backward", 1, 7);
  return t.finish();
}
