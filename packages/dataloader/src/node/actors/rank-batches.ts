/** What a rank reads its batches from: plain data that can be sent to its thread or process. */
import type { Seconds } from "@trireme/core";
import { decodeFrame } from "../../construct/batch-frame.ts";
import type { ShareBatch } from "../../construct/microbatch.ts";
import type { RingRef } from "./ring.ts";
import { nextFrame, openRing } from "./ring-waits.ts";

/** A rank's place at a ring. */
export interface RankFeed {
  readonly rank: number;
  readonly ring: RingRef;
  /** The rank's place in the ring's readers. */
  readonly reader: number;
}

/** How a rank reads. */
export interface RankBatchOptions {
  /** Time to wait for a step before giving up, naming who is missing. Default 600. */
  readonly deadline?: Seconds;
  /** Ends the stream; the next read rejects with the signal's reason. */
  readonly signal?: AbortSignal;
}

/**
 * The batches of a rank in order of step, from where it left off at this ring, to the loader's end. A
 * batch is a copy: it stays as it is. One stream at a time for each rank.
 */
export async function* rankBatches(
  feed: RankFeed,
  options: RankBatchOptions = {},
): AsyncGenerator<ShareBatch, void, undefined> {
  const { deadline = 600, signal } = options;
  const ring = openRing(feed.ring);
  try {
    for (;;) {
      const frame = await nextFrame(ring, feed.reader, deadline, signal);
      if (frame === undefined) return;
      yield decodeFrame(frame);
    }
  } finally {
    ring.release();
  }
}
