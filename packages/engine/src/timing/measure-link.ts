/** Micro-timing of the messages between two ranks on this machine. */
import { communicatorArena } from "@trireme/collectives";
import type { BytesPerSecond, Seconds } from "@trireme/core";
import type { LinkSeed } from "./link-protocol.ts";
import { measureOnThread } from "./measure-on-thread.ts";

/** What a message between two ranks takes: `latency + bytes / bandwidth`. */
export interface MeasuredLink {
  /** Of one direction, while both directions are used and sums are formed, as in a reduction. */
  readonly bandwidth: BytesPerSecond;
  /** Of the smallest message, the waking of the sleeping receiver included. */
  readonly latency: Seconds;
}

/**
 * Times messages and reductions between two threads, by the communicator that training uses; under
 * half a second. Throws `MEASURE` when a thread ends before it has measured.
 */
export async function measureLink(): Promise<MeasuredLink> {
  const arena = communicatorArena(2);
  const seeds: LinkSeed[] = [0, 1].map((rank) => ({ arena, rank }));
  const worker = new URL("./link-worker", import.meta.url);
  const [measured] = await Promise.all(
    seeds.map((seed) => measureOnThread<MeasuredLink>(worker, seed)),
  );
  return measured!;
}
