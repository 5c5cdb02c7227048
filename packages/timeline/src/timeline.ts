/**
 * The record of what happened, simulated or measured: one span for each thing a rank did, held as
 * columns so that ten million spans fit in 1 GB and are read without an object each.
 */
import { type Bytes, type Flops, type Seconds, TriremeError } from "@trireme/core";
import { type Lane, type SpanKind, lanes, spanKinds } from "./kind.ts";

/** Spans as columns, in the order in which they were added; position i of each column is span i. */
export interface Timeline {
  readonly schema: "trireme.timeline";
  readonly version: 1;
  /** Spans. */
  readonly length: number;
  /** One more than the highest rank, or the number the builder was told; 0 when empty. */
  readonly ranks: number;
  readonly rank: Int32Array;
  /** Positions in `lanes`. */
  readonly lane: Uint8Array;
  /** Positions in `spanKinds`. */
  readonly kind: Uint8Array;
  /** Positions in `actions`. */
  readonly action: Uint32Array;
  /** Seconds from the timeline's origin. */
  readonly start: Float64Array;
  readonly end: Float64Array;
  /** Training step; -1 where none was given, as for `stage` and `microbatch`. */
  readonly step: Int32Array;
  readonly stage: Int32Array;
  readonly microbatch: Int32Array;
  /** Bytes moved; 0 where none was given. */
  readonly bytes: Float64Array;
  readonly flops: Float64Array;
  /** Parents of span i are `parents[parentsAt[i]]` to `parents[parentsAt[i + 1] - 1]`, ascending. */
  readonly parentsAt: Uint32Array;
  readonly parents: Uint32Array;
  /** Names of actions, each once: "3F1", "2SEND_B2", "optimizer". */
  readonly actions: readonly string[];
}

/** One span as an object, for reading by people and tests; loops over many spans read the columns. */
export interface Span {
  readonly index: number;
  readonly rank: number;
  readonly lane: Lane;
  readonly kind: SpanKind;
  readonly action: string;
  readonly start: Seconds;
  readonly end: Seconds;
  readonly step: number;
  readonly stage: number;
  readonly microbatch: number;
  readonly bytes: Bytes;
  readonly flops: Flops;
  /** Spans that had to end before this one could start, beside those before it on its lane. */
  readonly parents: readonly number[];
}

/** Span i of a timeline; an error when there is none. */
export function span(t: Timeline, i: number): Span {
  if (!Number.isInteger(i) || i < 0 || i >= t.length) {
    throw new TriremeError("SPAN", `span ${i} of a timeline of ${t.length}: count from 0`);
  }
  return {
    index: i,
    rank: t.rank[i]!,
    lane: lanes[t.lane[i]!]!,
    kind: spanKinds[t.kind[i]!]!,
    action: t.actions[t.action[i]!]!,
    start: t.start[i]!,
    end: t.end[i]!,
    step: t.step[i]!,
    stage: t.stage[i]!,
    microbatch: t.microbatch[i]!,
    bytes: t.bytes[i]!,
    flops: t.flops[i]!,
    parents: [...t.parents.subarray(t.parentsAt[i], t.parentsAt[i + 1])],
  };
}

/** All spans in order of entry, made one at a time. */
export function* spans(t: Timeline): Generator<Span> {
  for (let i = 0; i < t.length; i++) yield span(t, i);
}
