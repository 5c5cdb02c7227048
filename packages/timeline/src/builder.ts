/** Writes a timeline span by span: checks each at the door and grows the columns as needed. */
import { type Bytes, type Flops, type Seconds, TriremeError } from "@trireme/core";
import { type Lane, type SpanKind, kindCode, laneCode, lanes, spanKinds } from "./kind.ts";
import type { Timeline } from "./timeline.ts";

/** One span as it is handed in. Absent `step`, `stage`, `microbatch` are -1; absent sizes 0. */
export interface SpanInput {
  readonly rank: number;
  readonly lane: Lane;
  readonly kind: SpanKind;
  /** What was done, the same for the same thing in every timeline: comparison matches by it. */
  readonly action: string;
  readonly start: Seconds;
  readonly end: Seconds;
  readonly step?: number | undefined;
  readonly stage?: number | undefined;
  readonly microbatch?: number | undefined;
  readonly bytes?: Bytes | undefined;
  readonly flops?: Flops | undefined;
  /** Spans, added before, that had to end before this one could start. */
  readonly parents?: readonly number[] | undefined;
}

const limit = 2 ** 31;

export class TimelineBuilder {
  #length = 0;
  #ranks: number;
  #capacity: number;
  #rank: Int32Array;
  #lane: Uint8Array;
  #kind: Uint8Array;
  #action: Uint32Array;
  #start: Float64Array;
  #end: Float64Array;
  #step: Int32Array;
  #stage: Int32Array;
  #microbatch: Int32Array;
  #bytes: Float64Array;
  #flops: Float64Array;
  /** Pairs of (span, parent), in the order in which they were told. */
  #edges = new Uint32Array(64);
  #edgeWords = 0;
  readonly #actions: string[] = [];
  readonly #actionCodes = new Map<string, number>();

  /**
   * @param options `capacity`: spans held before the columns grow; `ranks`: how many ranks the
   * timeline has even if some do nothing.
   */
  constructor(options: { readonly capacity?: number; readonly ranks?: number } = {}) {
    const { capacity = 256, ranks = 0 } = options;
    if (!Number.isInteger(ranks) || ranks < 0 || ranks > limit) {
      throw new TriremeError("SPAN", `${ranks} ranks: give an integer in 0..2^31`);
    }
    if (!Number.isInteger(capacity) || capacity < 0 || capacity > limit) {
      throw new TriremeError("SPAN", `capacity ${capacity}: give an integer in 0..2^31`);
    }
    this.#ranks = ranks;
    this.#capacity = Math.max(1, capacity);
    const n = this.#capacity;
    this.#rank = new Int32Array(n);
    this.#lane = new Uint8Array(n);
    this.#kind = new Uint8Array(n);
    this.#action = new Uint32Array(n);
    this.#start = new Float64Array(n);
    this.#end = new Float64Array(n);
    this.#step = new Int32Array(n);
    this.#stage = new Int32Array(n);
    this.#microbatch = new Int32Array(n);
    this.#bytes = new Float64Array(n);
    this.#flops = new Float64Array(n);
  }

  /** Spans so far. */
  get length(): number {
    return this.#length;
  }

  /** The code of an action's name for `addFast`; the same name has the same code. */
  actionCode(action: string): number {
    let code = this.#actionCodes.get(action);
    if (code === undefined) {
      code = this.#actions.push(action) - 1;
      this.#actionCodes.set(action, code);
    }
    return code;
  }

  /** Adds a span and returns its index. An error when it ends before it starts or names nothing known. */
  add(span: SpanInput): number {
    const index = this.addFast(
      span.rank,
      laneCode(span.lane),
      kindCode(span.kind),
      this.actionCode(span.action),
      span.start,
      span.end,
      span.step,
      span.stage,
      span.microbatch,
      span.bytes,
      span.flops,
    );
    if (span.parents !== undefined) for (const parent of span.parents) this.link(index, parent);
    return index;
  }

  /** `add` without an object: codes are positions in `lanes` and `spanKinds`, and `actionCode`'s. */
  addFast(
    rank: number,
    lane: number,
    kind: number,
    action: number,
    start: Seconds,
    end: Seconds,
    step = -1,
    stage = -1,
    microbatch = -1,
    bytes: Bytes = 0,
    flops: Flops = 0,
  ): number {
    // Written so that NaN is refused too; Infinity - Infinity is NaN.
    if (!(end - start >= 0) || end - start === Infinity) {
      throw new TriremeError(
        "SPAN",
        `span from ${start} s to ${end} s: it must end at or after its start, both finite`,
      );
    }
    if (!isInteger(rank, 0)) {
      throw new TriremeError("SPAN", `rank ${rank}: give an integer in 0..2^31-1`);
    }
    if (!(isInteger(step, -1) && isInteger(stage, -1) && isInteger(microbatch, -1))) {
      throw new TriremeError(
        "SPAN",
        `step ${step}, stage ${stage}, microbatch ${microbatch}: give integers in 0..2^31-1, or -1 for none`,
      );
    }
    if (!(bytes >= 0 && bytes < Infinity && flops >= 0 && flops < Infinity)) {
      throw new TriremeError(
        "SPAN",
        `${bytes} bytes, ${flops} FLOP: give finite numbers of at least 0`,
      );
    }
    if (!(isCode(lane, lanes) && isCode(kind, spanKinds) && isCode(action, this.#actions))) {
      throw new TriremeError(
        "SPAN",
        `codes of lane ${lane}, kind ${kind}, action ${action}: use laneCode, kindCode, actionCode`,
      );
    }
    const i = this.#length++;
    if (i === this.#capacity) this.#grow(Math.ceil(i * 1.5) + 16);
    this.#rank[i] = rank;
    this.#lane[i] = lane;
    this.#kind[i] = kind;
    this.#action[i] = action;
    this.#start[i] = start;
    this.#end[i] = end;
    this.#step[i] = step;
    this.#stage[i] = stage;
    this.#microbatch[i] = microbatch;
    this.#bytes[i] = bytes;
    this.#flops[i] = flops;
    if (rank >= this.#ranks) this.#ranks = rank + 1;
    return i;
  }

  /** Says that `span` could not start before `parent` had ended; both were added before. */
  link(span: number, parent: number): void {
    if (!(isInteger(span, 0) && isInteger(parent, 0)) || Math.max(span, parent) >= this.#length) {
      throw new TriremeError(
        "SPAN",
        `span ${span} after span ${parent}: only ${this.#length} spans were added`,
      );
    }
    if (span === parent) throw new TriremeError("SPAN", `span ${span} cannot wait for itself`);
    if (this.#edgeWords === this.#edges.length) {
      this.#edges = grown(this.#edges, new Uint32Array(this.#edges.length * 2));
    }
    this.#edges[this.#edgeWords++] = span;
    this.#edges[this.#edgeWords++] = parent;
  }

  /** The timeline of all spans so far. The builder can go on: later spans do not touch the result. */
  finish(): Timeline {
    const n = this.#length;
    return {
      schema: "trireme.timeline",
      version: 1,
      length: n,
      ranks: this.#ranks,
      rank: filled(this.#rank, n),
      lane: filled(this.#lane, n),
      kind: filled(this.#kind, n),
      action: filled(this.#action, n),
      start: filled(this.#start, n),
      end: filled(this.#end, n),
      step: filled(this.#step, n),
      stage: filled(this.#stage, n),
      microbatch: filled(this.#microbatch, n),
      bytes: filled(this.#bytes, n),
      flops: filled(this.#flops, n),
      ...parentsOf(n, this.#edges.subarray(0, this.#edgeWords)),
      actions: [...this.#actions],
    };
  }

  #grow(capacity: number): void {
    this.#capacity = capacity;
    this.#rank = grown(this.#rank, new Int32Array(capacity));
    this.#lane = grown(this.#lane, new Uint8Array(capacity));
    this.#kind = grown(this.#kind, new Uint8Array(capacity));
    this.#action = grown(this.#action, new Uint32Array(capacity));
    this.#start = grown(this.#start, new Float64Array(capacity));
    this.#end = grown(this.#end, new Float64Array(capacity));
    this.#step = grown(this.#step, new Int32Array(capacity));
    this.#stage = grown(this.#stage, new Int32Array(capacity));
    this.#microbatch = grown(this.#microbatch, new Int32Array(capacity));
    this.#bytes = grown(this.#bytes, new Float64Array(capacity));
    this.#flops = grown(this.#flops, new Float64Array(capacity));
  }
}

type Column = Int32Array | Uint8Array | Uint32Array | Float64Array;

function grown<C extends Column>(from: C, to: C): C {
  to.set(from);
  return to;
}

/**
 * The first n values of a column. A column that is nearly full is shared, not copied: what is added
 * later comes after them. So ten million spans are not held twice.
 */
function filled<C extends Column>(column: C, n: number): C;
function filled(column: Column, n: number): Column {
  return n > column.length * 0.875 ? column.subarray(0, n) : column.slice(0, n);
}

function isInteger(n: number, least: number): boolean {
  return n >= least && n < limit && Math.floor(n) === n;
}

function isCode(n: number, names: readonly string[]): boolean {
  return n >= 0 && n < names.length && Math.floor(n) === n;
}

/** Pairs (span, parent) as one ascending list of parents a span, each parent once. */
function parentsOf(
  n: number,
  edges: Uint32Array,
): { parentsAt: Uint32Array; parents: Uint32Array } {
  const at = new Uint32Array(n + 1);
  for (let e = 0; e < edges.length; e += 2) at[edges[e]! + 1]!++;
  for (let i = 0; i < n; i++) at[i + 1]! += at[i]!;
  const next = at.slice();
  const parents = new Uint32Array(edges.length / 2);
  for (let e = 0; e < edges.length; e += 2) parents[next[edges[e]!]!++] = edges[e + 1]!;
  let kept = 0;
  for (let i = 0; i < n; i++) {
    const first = at[i]!;
    const last = next[i]!;
    if (last - first > 1) parents.subarray(first, last).sort();
    at[i] = kept;
    for (let e = first; e < last; e++) {
      const parent = parents[e]!;
      if (kept === at[i] || parents[kept - 1] !== parent) parents[kept++] = parent;
    }
  }
  at[n] = kept;
  return { parentsAt: at, parents: parents.slice(0, kept) };
}
