/**
 * What the host was doing when a piece of work was launched: the phase of training, from the calls
 * around the launch, and the profiler's step. A kernel names its launch by "External id" (that of the
 * operator) or by "correlation" (that of the runtime call).
 */
import { type Slice, numberOf } from "./trace-events.ts";

/** A phase of training, as a kind of span. */
export type Phase = "forward" | "backward" | "optimizer";

export class LaunchContext {
  readonly #phases = new Map<Slice, Phase>();
  readonly #repeats = new Set<Slice>();
  readonly #byExternal = new Map<number, Slice>();
  readonly #byCorrelation = new Map<number, Slice>();
  /** Starts, ends and numbers of "ProfilerStep#n", by start. */
  readonly #steps: { readonly start: number; readonly end: number; readonly step: number }[] = [];
  /** By step: the last end up to it. */
  readonly #reach: Float64Array;

  constructor(slices: readonly Slice[]) {
    const threads = new Map<string, Slice[]>();
    for (const slice of slices) {
      if (!isCall(slice)) continue;
      const key = `${slice.process} ${slice.thread}`;
      const list = threads.get(key);
      if (list === undefined) threads.set(key, [slice]);
      else list.push(slice);
      const external = numberOf(slice.args["External id"]);
      if (slice.category === "cpu_op" && external !== undefined)
        this.#byExternal.set(external, slice);
      const correlation = numberOf(slice.args["correlation"]);
      if (correlation !== undefined) this.#byCorrelation.set(correlation, slice);
      const step = /^ProfilerStep#(\d+)$/.exec(slice.name);
      if (step !== null)
        this.#steps.push({ start: slice.start, end: slice.end, step: Number(step[1]) });
    }
    this.#steps.sort((a, b) => a.start - b.start);
    let reach = -Infinity;
    this.#reach = Float64Array.from(this.#steps, ({ end }) => (reach = Math.max(reach, end)));
    for (const thread of threads.values()) this.#nest(thread);
  }

  /** The call that launched a piece of device work; undefined when the trace does not tell. */
  launchOf(slice: Slice): Slice | undefined {
    const external = numberOf(slice.args["External id"]);
    const correlation = numberOf(slice.args["correlation"]);
    return (
      (external === undefined ? undefined : this.#byExternal.get(external)) ??
      (correlation === undefined ? undefined : this.#byCorrelation.get(correlation))
    );
  }

  /** The phase in which something ran or was launched; "forward" when nothing says otherwise. */
  phaseOf(slice: Slice): Phase {
    const own = this.#phases.get(slice);
    if (own !== undefined) return own;
    const launch = this.launchOf(slice);
    return (launch === undefined ? undefined : this.#phases.get(launch)) ?? "forward";
  }

  /** The profiler's step in which something started, of several the innermost; undefined outside of all. */
  stepOf({ start }: Slice): number | undefined {
    let [low, high] = [0, this.#steps.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#steps[middle]!.start <= start) low = middle + 1;
      else high = middle;
    }
    for (let k = low - 1; k >= 0 && this.#reach[k]! > start; k--) {
      if (start < this.#steps[k]!.end) return this.#steps[k]!.step;
    }
    return undefined;
  }

  /**
   * Whether a call is nothing but the only call inside one of its own name, an operator that goes on
   * to another overload of itself: torch's averages count the two as one.
   */
  isRepeat(slice: Slice): boolean {
    return this.#repeats.has(slice);
  }

  /** Gives every call of a thread the phase that it names, or else that of the call around it. */
  #nest(thread: Slice[]): void {
    thread.sort((a, b) => a.start - b.start || b.end - a.end);
    const open: Open[] = [];
    const nested: { readonly slice: Slice; readonly outer: Open }[] = [];
    for (const slice of thread) {
      while (open.length > 0 && open[open.length - 1]!.slice.end <= slice.start) open.pop();
      const outer = open.at(-1);
      const phase = namedPhase(slice.name) ?? outer?.phase ?? "forward";
      this.#phases.set(slice, phase);
      if (outer !== undefined) {
        outer.calls++;
        if (outer.slice.name === slice.name) nested.push({ slice, outer });
      }
      open.push({ slice, phase, calls: 0 });
    }
    for (const { slice, outer } of nested) if (outer.calls === 1) this.#repeats.add(slice);
  }
}

/** A call that has not ended yet, and the calls right inside it so far. */
interface Open {
  readonly slice: Slice;
  readonly phase: Phase;
  calls: number;
}

function isCall({ category }: Slice): boolean {
  return (
    category === "cpu_op" ||
    category === "user_annotation" ||
    category === "cuda_runtime" ||
    category === "cuda_driver"
  );
}

function namedPhase(name: string): Phase | undefined {
  if (name === "forward" || name === "backward" || name === "optimizer") return name;
  if (name.startsWith("autograd::engine::")) return "backward";
  if (name.startsWith("Optimizer.")) return "optimizer";
  return undefined;
}
