/** A step whose times are kept, and slices of it. */
import { type Seconds, TriremeError } from "@trireme/core";
import type { Timeline } from "@trireme/timeline";
import type { Jitter } from "../program/jitter.ts";
import type { Observed } from "../program/play-options.ts";
import { observedTimes, playInto } from "../program/play.ts";
import { AggregateRecorder } from "../program/aggregate.ts";
import { type Recorder, TimelineRecorder } from "../program/recorder.ts";
import { type SimulateOptions, type SimulatedStep, simulatedStep } from "../step/simulated-step.ts";
import { sliceProgram } from "./slice-program.ts";

/** A step that was played, with when everything in it happened. */
export interface StepRecording {
  readonly step: SimulatedStep;
  readonly observed: Observed;
  readonly time: Seconds;
}

/** What differs in a slice from the recording; left out, nothing. */
export interface SliceOptions {
  /** Ranks of the plan to simulate in full; a rank that was folded is simulated as its stand-in. */
  readonly ranks: readonly number[];
  /** Speed of their computing, by rank of the plan; 1 as priced. */
  readonly speed?: (rank: number) => number;
  readonly jitter?: Jitter;
}

/** A slice of a step. */
export interface StepSlice {
  /** Of the chosen ranks alone. */
  readonly timeline: Timeline;
  readonly events: number;
}

/** Plays a step and keeps its times; options as for `simulateStep`. */
export function recordStep(o: SimulateOptions): StepRecording {
  const step = simulatedStep(o);
  const observed = observedTimes(step.program);
  const recorder = new AggregateRecorder(step.program.labels, step.ranks.count);
  playInto(step.program, recorder, { ...step.play, observed });
  return { step, observed, time: recorder.makespan };
}

/**
 * Plays some ranks of a recorded step against the others as they were.
 * @throws TriremeError "SLICE" for a rank that the plan does not have.
 */
export function sliceStep(recording: StepRecording, o: SliceOptions): StepSlice {
  const { standIn, rankOf } = recording.step.ranks;
  const unknown = o.ranks.find((rank) => !(rank in standIn));
  if (unknown !== undefined) {
    throw new TriremeError("SLICE", `rank ${unknown} is not in 0..${standIn.length - 1}`);
  }
  const simulated = [...new Set(o.ranks.map((rank) => standIn[rank]!))];
  const { program, chosen } = sliceProgram(recording.step.program, recording.observed, simulated);
  const names = simulated.map((one) => rankOf[one]!);
  const inner = new TimelineRecorder(program.labels, { rankOf: names });
  const recorder = new ChosenRecorder(inner, chosen);
  const { speed } = o;
  const { events } = playInto(program, recorder, {
    rankOf: names,
    ...(o.jitter === undefined ? {} : { jitter: o.jitter }),
    ...(speed === undefined
      ? {}
      : {
          speed: Array.from({ length: program.ranks }, (_, i) =>
            i < chosen ? speed(names[i]!) : 1,
          ),
        }),
  });
  return { timeline: inner.finish(), events };
}

/** Keeps the spans of the chosen ranks, and links among them. */
class ChosenRecorder implements Recorder {
  readonly links = true;
  readonly #inner: TimelineRecorder;
  readonly #chosen: number;
  /** Number in the timeline of each span; −1 for those of replayed ranks. */
  readonly #kept: number[] = [];

  constructor(inner: TimelineRecorder, chosen: number) {
    this.#inner = inner;
    this.#chosen = chosen;
  }

  span(rank: number, label: number, start: Seconds, end: Seconds): number {
    const own = rank < this.#chosen ? this.#inner.span(rank, label, start, end) : -1;
    return this.#kept.push(own) - 1;
  }

  link(span: number, parent: number): void {
    const [from, to] = [this.#kept[span]!, this.#kept[parent]!];
    if (from >= 0 && to >= 0) this.#inner.link(from, to);
  }
}
