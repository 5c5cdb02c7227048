/**
 * Two timelines of the same work side by side, as predicted and as measured: by how much the second
 * takes longer, and why. The second is replayed with one cause after the other undone: its durations
 * of computing as in the first, then those of communication, then the rest, then its late starts.
 * What each undoing saves is what the cause has cost; what is left is another order of things. So
 * the causes add up to the difference whatever the timelines are.
 */
import { type Seconds, TriremeError } from "@trireme/core";
import { adoptParents } from "./adopt-parents.ts";
import { criticalPath } from "./critical-path.ts";
import { type DependencyGraph, dependencyGraph, replayEnds } from "./dependency-graph.ts";
import { hiddenTimes } from "./hidden-times.ts";
import { type Category, type SpanKind, categoryOf, spanKinds } from "./kind.ts";
import { matchSpans } from "./match-spans.ts";
import type { Timeline } from "./timeline.ts";

/** Seconds by which the second timeline is longer, split by cause; negative where it gained. */
export interface Causes {
  /** Computing that takes another time, or more or less of it. */
  readonly compute: Seconds;
  /** Communication that takes another time, or more or less of it. */
  readonly communication: Seconds;
  /** Loading, checkpoints and the like. */
  readonly other: Seconds;
  /** Spans that start later than they could. */
  readonly startDelay: Seconds;
  /** Communication that computing hid before, and no longer hides. */
  readonly overlap: Seconds;
  /** Another order of computing, which makes ranks wait for each other. */
  readonly bubble: Seconds;
}

/** One span of the second timeline that makes a difference. */
export interface ActionDifference {
  /** Positions in the two timelines; -1 when only the second has it. */
  readonly first: number;
  readonly second: number;
  readonly rank: number;
  readonly kind: SpanKind;
  readonly action: string;
  /** By how much its duration, and the delay of its start, are larger. */
  readonly duration: Seconds;
  readonly delay: Seconds;
  /** By how much the second timeline would be shorter, were it as in the first. */
  readonly effect: Seconds;
}

/** What `compare` finds; differences are second minus first. */
export interface Comparison {
  /** Makespans, recorded idle spans left out. */
  readonly first: Seconds;
  readonly second: Seconds;
  readonly difference: Seconds;
  /** Add up to `difference`. */
  readonly causes: Causes;
  /** Spans found in both, and in one only. */
  readonly matched: number;
  readonly onlyFirst: number;
  readonly onlySecond: number;
  /** The spans on the second's critical path with the largest effects, largest first. */
  readonly actions: readonly ActionDifference[];
}

/** How timelines are compared. */
export interface CompareOptions {
  /** The rank of the first timeline that stands for a rank of the second; its own when left out. */
  readonly rankOf?: (rank: number) => number;
  /** Spans to list in `actions`; 10 when left out. */
  readonly actions?: number;
}

const categoryOfKind: readonly Category[] = spanKinds.map((kind) => categoryOf(kind));

/**
 * Compares two timelines; spans are the same by rank, kind, action and how often it was done. Where
 * the second has no parents, as measured timelines do, those of the first are taken to hold for it.
 * Throws TriremeError `CYCLE` when the parents of a timeline go round, `COMPARE` for no count of spans.
 */
export function compare(
  first: Timeline,
  measured: Timeline,
  options: CompareOptions = {},
): Comparison {
  const { actions = 10 } = options;
  if (!Number.isInteger(actions) || actions < 0) {
    throw new TriremeError("COMPARE", `${actions} actions to list: give an integer of at least 0`);
  }
  const match = matchSpans(first, measured, options.rankOf);
  const second = adoptParents(first, measured, match);
  const a = new Replay(first);
  const b = new Replay(second);
  const makespans = { first: a.makespan(), second: b.makespan() };
  const lost = lostOverlap(first, second, match);
  const found = new Uint8Array(first.length);
  for (const j of match) if (j >= 0) found[j] = 1;
  /** Saved by undoing the durations of a category in the second, less what the first alone has of it. */
  const durations = (category: Category): Seconds => {
    const saved = b.undo(a, match, (i) => b.category(i) === category, "durations");
    return saved - a.remove((j) => found[j] === 0 && a.category(j) === category);
  };
  const compute = durations("compute");
  const communication = durations("communication");
  const other = durations("other");
  const startDelay = b.undo(a, match, (i) => lost[i] === 0, "lags");
  const lateOverlap = b.undo(a, match, (i) => lost[i] === 1, "lags");
  // What is left is another order. Without communication, what is left of it is the bubble's.
  const left = b.makespan() - a.makespan();
  for (const replay of [a, b]) replay.remove((i) => replay.category(i) === "communication");
  const bubble = b.makespan() - a.makespan();
  const difference = makespans.second - makespans.first;
  return {
    ...makespans,
    difference,
    causes: {
      compute,
      communication,
      other,
      startDelay,
      overlap: lateOverlap + left - bubble,
      bubble,
    },
    matched: match.reduce((count, j) => count + (j >= 0 ? 1 : 0), 0),
    onlyFirst: found.reduce((count, seen) => count + 1 - seen, 0),
    onlySecond: match.reduce((count, j) => count + (j < 0 ? 1 : 0), 0),
    actions: largestEffects(first, second, match, actions),
  };
}

/** A timeline's durations and lags, to be changed and replayed. */
class Replay {
  readonly #t: Timeline;
  readonly #graph: DependencyGraph;
  readonly #durations: Float64Array;
  readonly #lags: Float64Array;
  readonly #partnerLags: Float64Array;

  constructor(t: Timeline) {
    this.#t = t;
    this.#graph = dependencyGraph(t);
    this.#durations = t.end.map((end, i) => end - t.start[i]!);
    this.#lags = this.#graph.lag.slice();
    this.#partnerLags = this.#graph.partnerLag.slice();
  }

  makespan(): Seconds {
    return replayEnds(this.#graph, this.#durations, this.#lags, this.#partnerLags).makespan;
  }

  /** Gives the spans chosen the durations or lags of their match, or none; returns what that saves. */
  undo(
    other: Replay,
    match: Int32Array,
    which: (i: number) => boolean,
    what: "durations" | "lags",
  ): Seconds {
    const before = this.makespan();
    for (let i = 0; i < match.length; i++) {
      if (!which(i)) continue;
      const j = match[i]!;
      if (what === "lags") {
        this.#lags[i] = j < 0 ? 0 : other.#lags[j]!;
      } else {
        this.#durations[i] = j < 0 ? 0 : other.#durations[j]!;
        this.#partnerLags[i] = j < 0 ? 0 : other.#partnerLags[j]!;
      }
    }
    return before - this.makespan();
  }

  /** Takes all time from the spans chosen; returns what that saves. */
  remove(which: (i: number) => boolean): Seconds {
    const before = this.makespan();
    for (let i = 0; i < this.#t.length; i++) {
      if (!which(i)) continue;
      this.#durations[i] = 0;
      this.#lags[i] = 0;
      this.#partnerLags[i] = 0;
    }
    return before - this.makespan();
  }

  /** The same for one span and both; returns what undoes it. */
  undoOne(other: Replay, i: number, j: number): () => void {
    const kept = [this.#durations[i]!, this.#lags[i]!, this.#partnerLags[i]!] as const;
    this.#durations[i] = j < 0 ? 0 : other.#durations[j]!;
    this.#lags[i] = j < 0 ? 0 : other.#lags[j]!;
    this.#partnerLags[i] = j < 0 ? 0 : other.#partnerLags[j]!;
    return () => {
      [this.#durations[i], this.#lags[i], this.#partnerLags[i]] = kept;
    };
  }

  category(i: number): Category {
    return categoryOfKind[this.#t.kind[i]!]!;
  }

  /** Duration and delay of a span; of two that end together, the second has only what it adds. */
  times(i: number): { readonly duration: Seconds; readonly delay: Seconds } {
    return this.#graph.partner[i]! < 0
      ? { duration: this.#durations[i]!, delay: this.#lags[i]! }
      : { duration: this.#partnerLags[i]!, delay: 0 };
  }
}

/** 1 for communication of the second timeline of which computing hides less than in the first. */
function lostOverlap(first: Timeline, second: Timeline, match: Int32Array): Uint8Array {
  const before = hiddenTimes(first);
  const after = hiddenTimes(second);
  return Uint8Array.from(match, (j, i) => {
    if (j < 0 || categoryOfKind[second.kind[i]!] !== "communication") return 0;
    // A hair of tolerance for rounding.
    return after[i]! < before[j]! * (1 - 1e-9) - 1e-12 ? 1 : 0;
  });
}

/** Undoes the spans of the critical path one by one, those first that differ most. */
function largestEffects(
  first: Timeline,
  second: Timeline,
  match: Int32Array,
  count: number,
): ActionDifference[] {
  const a = new Replay(first);
  const b = new Replay(second);
  const makespan = b.makespan();
  const differs = criticalPath(second)
    .path.map(({ index }) => {
      const j = match[index]!;
      const own = b.times(index);
      const before = j < 0 ? { duration: 0, delay: 0 } : a.times(j);
      const duration = own.duration - before.duration;
      return { first: j, second: index, duration, delay: own.delay - before.delay };
    })
    .filter(({ duration, delay }) => Math.abs(duration) + Math.abs(delay) > 1e-12)
    .sort((x, y) => Math.abs(y.duration + y.delay) - Math.abs(x.duration + x.delay));
  return differs
    .slice(0, count)
    .map(({ first: j, second: i, duration, delay }) => {
      const redo = b.undoOne(a, i, j);
      const effect = makespan - b.makespan();
      redo();
      return {
        first: j,
        second: i,
        rank: second.rank[i]!,
        kind: spanKinds[second.kind[i]!]!,
        action: second.actions[second.action[i]!]!,
        duration,
        delay,
        effect,
      };
    })
    .sort((x, y) => Math.abs(y.effect) - Math.abs(x.effect));
}
