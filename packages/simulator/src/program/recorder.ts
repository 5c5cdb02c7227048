/** Where the spans of a played program go: into a timeline, or into anything of the same shape. */
import type { Seconds } from "@trireme/core";
import { type Timeline, TimelineBuilder, kindCode, laneCode } from "@trireme/timeline";
import type { Label } from "./label.ts";

/** Takes spans as they end; ranks and labels are the program's. */
export interface Recorder {
  /** Whether it wants to know what each span waited for. */
  readonly links: boolean;
  /** Takes a span and returns its number, for `link`. */
  span(rank: number, label: number, start: Seconds, end: Seconds): number;
  /** `span` could not start before `parent` had ended. */
  link(span: number, parent: number): void;
}

/** What a timeline says of spans beside what the program does. */
export interface TimelineRecorderOptions {
  /** Rank that each rank of the program has in the timeline; its own number when left out. */
  readonly rankOf?: ArrayLike<number>;
  /** Step number of all spans; 0 when left out. */
  readonly step?: number;
  /** Whether spans are linked to what they waited for; true when left out. */
  readonly links?: boolean;
}

/** Columns of labels in the codes of timelines. */
interface Codes {
  readonly lane: Uint8Array;
  readonly kind: Uint8Array;
  readonly action: Uint32Array;
}

/** Writes every span into a timeline. */
export class TimelineRecorder implements Recorder {
  readonly links: boolean;
  readonly #builder = new TimelineBuilder({ capacity: 4096 });
  readonly #labels: readonly Label[];
  readonly #codes: Codes;
  readonly #rankOf: ArrayLike<number> | undefined;
  readonly #step: number;

  /** @param labels Of the program. */
  constructor(labels: readonly Label[], options: TimelineRecorderOptions = {}) {
    this.#labels = labels;
    this.#codes = {
      lane: Uint8Array.from(labels, (label) => laneCode(label.lane)),
      kind: Uint8Array.from(labels, (label) => kindCode(label.kind)),
      action: Uint32Array.from(labels, (label) => this.#builder.actionCode(label.action)),
    };
    this.#rankOf = options.rankOf;
    this.#step = options.step ?? 0;
    this.links = options.links ?? true;
  }

  span(rank: number, label: number, start: Seconds, end: Seconds): number {
    const { lane, kind, action } = this.#codes;
    const { stage = -1, microbatch = -1, bytes = 0, flops = 0 } = this.#labels[label]!;
    return this.#builder.addFast(
      this.#rankOf?.[rank] ?? rank,
      lane[label]!,
      kind[label]!,
      action[label]!,
      start,
      end,
      this.#step,
      stage,
      microbatch,
      bytes,
      flops,
    );
  }

  link(span: number, parent: number): void {
    this.#builder.link(span, parent);
  }

  /** The timeline of all spans so far. */
  finish(): Timeline {
    return this.#builder.finish();
  }
}
