/**
 * Mean times of forward and backward by machine and step: the matrix behind the heat map in which
 * slow machines stand out (Jiang et al., MegaScale, NSDI 2024, §4.2, Figure 7).
 */
import type { Seconds } from "@trireme/core";
import { spanKinds } from "./kind.ts";
import type { Timeline } from "./timeline.ts";

/** Times by machine (rows) and step (columns): entry m × steps.length + s. NaN where nothing ran. */
export interface TimeMatrix {
  /** Ascending. */
  readonly machines: readonly number[];
  /** Ascending; -1 for spans without a step. */
  readonly steps: readonly number[];
  /** Mean duration of a forward, in seconds. */
  readonly forward: Float64Array;
  /** Mean duration of a backward: of B, and of an I with as much W and recomputation as goes with it. */
  readonly backward: Float64Array;
}

const forwards = spanKinds.map((kind) => kind === "forward");
/** Spans that begin a backward, and spans that add to one. */
const backwards = spanKinds.map((kind) => kind === "backward" || kind === "input-gradient");
const additions = spanKinds.map((kind) => kind === "weight-gradient" || kind === "recompute");

/** The matrix of a timeline; `machineOf` tells the machine of a rank, itself when left out. */
export function timeMatrix(
  t: Timeline,
  machineOf: (rank: number) => number = (rank) => rank,
): TimeMatrix {
  const machines = [...new Set(t.rank)].map(machineOf);
  const rows = [...new Set(machines)].sort((a, b) => a - b);
  const steps = [...new Set(t.step)].sort((a, b) => a - b);
  const row = new Map(rows.map((machine, i) => [machine, i]));
  const column = new Map(steps.map((step, i) => [step, i]));
  const size = rows.length * steps.length;
  const [forward, forwardSpans] = [new Float64Array(size), new Float64Array(size)];
  const [backward, backwardSpans] = [new Float64Array(size), new Float64Array(size)];
  const add = (sums: Float64Array, i: number, at: number): void => {
    sums[at] = sums[at]! + (t.end[i]! - t.start[i]!);
  };
  for (let i = 0; i < t.length; i++) {
    const kind = t.kind[i]!;
    if (!(forwards[kind]! || backwards[kind]! || additions[kind]!)) continue;
    const at = row.get(machineOf(t.rank[i]!))! * steps.length + column.get(t.step[i]!)!;
    if (forwards[kind]!) {
      add(forward, i, at);
      forwardSpans[at]!++;
    } else {
      add(backward, i, at);
      if (backwards[kind]!) backwardSpans[at]!++;
    }
  }
  const mean = (sums: Float64Array, counts: Float64Array): Float64Array =>
    sums.map((sum, i): Seconds => (counts[i]! > 0 ? sum / counts[i]! : NaN));
  return {
    machines: rows,
    steps,
    forward: mean(forward, forwardSpans),
    backward: mean(backward, backwardSpans),
  };
}
