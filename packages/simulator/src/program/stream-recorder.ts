/** A recorder that hands its spans on in blocks of the timeline file, so that none stays in memory. */
import type { Seconds } from "@trireme/core";
import { TimelineEncoder } from "@trireme/timeline";
import type { Label } from "./label.ts";
import { type Recorder, TimelineRecorder, type TimelineRecorderOptions } from "./recorder.ts";

/** Spans of a block: enough to compress. */
const blockSpans = 65_536;

/** Encodes spans; the bytes that `write` gets, in order, are a file that `decodeTimeline` reads. */
export class StreamRecorder implements Recorder {
  readonly links = false;
  readonly #labels: readonly Label[];
  readonly #options: TimelineRecorderOptions;
  readonly #write: (bytes: Uint8Array<ArrayBuffer>) => void;
  readonly #encoder = new TimelineEncoder();
  #block: TimelineRecorder;
  #held = 0;

  constructor(
    labels: readonly Label[],
    write: (bytes: Uint8Array<ArrayBuffer>) => void,
    options: Omit<TimelineRecorderOptions, "links"> = {},
  ) {
    this.#labels = labels;
    this.#options = { ...options, links: false };
    this.#write = write;
    this.#block = new TimelineRecorder(labels, this.#options);
  }

  span(rank: number, label: number, start: Seconds, end: Seconds): number {
    this.#block.span(rank, label, start, end);
    if (++this.#held === blockSpans) this.finish();
    return -1;
  }

  link(): void {
    // Blocks are independent of each other.
  }

  /** Writes what is left. */
  finish(): void {
    if (this.#held > 0 || this.#encoder.length === 0) {
      this.#write(this.#encoder.push(this.#block.finish()));
    }
    if (this.#held === 0) return;
    this.#held = 0;
    this.#block = new TimelineRecorder(this.#labels, this.#options);
  }
}
