/**
 * A ring of slots in memory that one data constructor fills and the ranks of a host read, each at its
 * own pace: a batch lies in memory once, however many ranks need it (MegaScale, arXiv:2402.15627, §3.4:
 * one loader a machine, tensor ranks copy from shared memory). A slot is filled again when every reader
 * has taken it, which is the back-pressure.
 */

/** A ring as plain data, to be opened on another thread ("shared") or in another process ("file"). */
export type RingRef = RingShape &
  (
    | { readonly kind: "shared"; readonly buffer: SharedArrayBuffer }
    | { readonly kind: "file"; readonly path: string }
  );

/** What a ring is made of. */
export interface RingShape {
  /** What it holds, for messages: "share 2, slice 0". */
  readonly name: string;
  /** Step of the first frame. */
  readonly firstStep: number;
  readonly slots: number;
  /** Words of the longest frame. */
  readonly slotWords: number;
  /** Ranks that read it. */
  readonly readers: readonly number[];
}

/** "ended" after the last step or when the loader was closed, "failed" when it gave up. */
export type RingStatus = "open" | "ended" | "failed";

/** In the order of their codes. */
export const ringStatuses: readonly RingStatus[] = ["open", "ended", "failed"];

/** Counters and slots; frame f lies in slot f mod slots. */
export interface Ring {
  readonly shape: RingShape;
  /** Frames written so far. */
  written(): number;
  /** Frames that a reader, by its place in `readers`, has taken. */
  taken(reader: number): number;
  /** Whether more frames may come; those written before can be read whatever it says. */
  status(): RingStatus;
  /** Fills the slot of the next frame, of so many words, and counts it as written. */
  write(words: number, fill: (frame: Int32Array) => void): void;
  /** A copy of the next frame of a reader, which is counted as taken. */
  take(reader: number): Int32Array;
  /** Says that no more frames come. */
  close(status: "ended" | "failed"): void;
  /** A number that is another when a counter has changed; read it before looking at the counters. */
  changes(): number;
  /** Resolves when `changes()` may be another than `seen`, at the latest after `ms`. */
  changed(seen: number, ms: number): Promise<void>;
  /** Lets go of files. */
  release(): void;
}
