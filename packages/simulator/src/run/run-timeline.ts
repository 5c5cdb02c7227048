/** A run as a timeline, and its ETTR over a sliding window. */
import type { Seconds } from "@trireme/core";
import { type ProductiveSpan, slidingEttr } from "@trireme/fault-tolerance";
import { type SpanKind, type Timeline, TimelineBuilder } from "@trireme/timeline";
import type { OutagePhase } from "./outages.ts";
import { type Piece, pieces } from "./run-pieces.ts";
import type { RunSimulation } from "./simulate-run.ts";

const kinds: Readonly<Record<OutagePhase | Piece["what"], SpanKind>> = {
  training: "other",
  lost: "other",
  checkpoint: "checkpoint",
  standstill: "idle",
  join: "barrier",
  launch: "other",
  groups: "barrier",
  load: "load",
  recompute: "recompute",
  detect: "idle",
  halt: "idle",
  wait: "idle",
};

/**
 * A run as one rank: training, what of it was lost, saves and standing still on the compute lane, and
 * between generations the phases of each outage on the host lane. A span's `step` is its generation's
 * first. Every second of the run is in exactly one span.
 */
export function runTimeline(run: RunSimulation): Timeline {
  const builder = new TimelineBuilder({ ranks: 1 });
  for (const span of run.spans) {
    for (const { what, start, end } of pieces(span, run.save)) {
      const kind = kinds[what];
      builder.add({ rank: 0, lane: "compute", kind, action: what, start, end, step: span.step });
    }
  }
  for (const { what, span, start, end } of run.outages) {
    const { step } = run.spans[span]!;
    builder.add({ rank: 0, lane: "host", kind: kinds[what], action: what, start, end, step });
  }
  return builder.finish();
}

/** ETTR over the window that ends at each multiple of `every`; ByteRobust's window is an hour. */
export function slidingRunEttr(
  run: RunSimulation,
  { window = 3600, every = 3600 }: { readonly window?: Seconds; readonly every?: Seconds } = {},
): { readonly at: Seconds; readonly ettr: number }[] {
  const productive: ProductiveSpan[] = [];
  for (const span of run.spans) {
    for (const piece of pieces(span, run.save)) {
      if (piece.what === "training") productive.push(piece);
    }
  }
  const samples = Array.from({ length: Math.floor(run.end / every) }, (_, i) => (i + 1) * every);
  const values = slidingEttr(productive, samples, window);
  return samples.map((at, i) => ({ at, ettr: values[i]! }));
}
