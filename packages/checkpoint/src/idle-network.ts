/**
 * Copies sent in the idle times of the network (Gemini, SOSP 2023; ByteRobust, SOSP 2025): cut into
 * chunks, no longer than what the receiver has room for, each inside one idle span, so that training's
 * own messages never wait for them.
 */
import type { Bytes, BytesPerSecond, Seconds } from "@trireme/core";
import { TriremeError } from "@trireme/core";

/** What is to be sent, and when the network is free. */
export interface IdleNetworkOptions {
  /** Idle spans of a step, ascending, not overlapping. */
  readonly idle: readonly { readonly start: Seconds; readonly end: Seconds }[];
  readonly bytes: Bytes;
  readonly bandwidth: BytesPerSecond;
  /** Time that a chunk takes beside its bytes; default 0. */
  readonly latency?: Seconds;
  /** The longest chunk. */
  readonly chunk: Bytes;
}

/** A part of the copy. */
export interface SentChunk {
  readonly offset: Bytes;
  readonly bytes: Bytes;
  readonly start: Seconds;
  readonly end: Seconds;
}

/** The chunks in order, and the bytes that no idle time was left for. */
export function sendInIdleTime(options: IdleNetworkOptions): {
  readonly chunks: readonly SentChunk[];
  readonly left: Bytes;
} {
  const { idle, bytes, bandwidth, latency = 0, chunk } = options;
  check(options);
  const chunks: SentChunk[] = [];
  let offset = 0;
  for (const span of idle) {
    let now = span.start;
    while (offset < bytes) {
      // A millionth of a byte is rounding, not room that is missing.
      const room = Math.floor((span.end - now - latency) * bandwidth + 1e-6);
      const size = Math.min(chunk, bytes - offset, room);
      if (size < 1) break;
      const end = Math.min(span.end, now + latency + size / bandwidth);
      chunks.push({ offset, bytes: size, start: now, end });
      offset += size;
      now = end;
    }
  }
  return { chunks, left: bytes - offset };
}

function check({ idle, bytes, bandwidth, latency = 0, chunk }: IdleNetworkOptions): void {
  const refuse = (what: string): TriremeError => new TriremeError("CHECKPOINT", what);
  if (!Number.isSafeInteger(bytes) || bytes < 0)
    throw refuse(`bytes ${bytes}: it is an integer of at least 0`);
  if (!Number.isSafeInteger(chunk) || chunk < 1)
    throw refuse(`chunk ${chunk}: it is an integer of at least 1`);
  if (!(bandwidth > 0 && Number.isFinite(bandwidth)))
    throw refuse(`bandwidth ${bandwidth}: it is above 0`);
  if (!(latency >= 0 && Number.isFinite(latency)))
    throw refuse(`latency ${latency}: it is a time of at least 0`);
  let last = -Infinity;
  for (const { start, end } of idle) {
    if (!(start >= last && end >= start && Number.isFinite(end)))
      throw refuse(`idle span [${start}, ${end}) after ${last}: spans ascend and do not overlap`);
    last = end;
  }
}
