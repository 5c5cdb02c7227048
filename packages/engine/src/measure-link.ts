/** Micro-timing of the messages between two ranks on this machine. */
import { communicatorArena } from "@trireme/collectives";
import { type BytesPerSecond, type Seconds, TriremeError } from "@trireme/core";
import type { LinkSeed } from "./link-protocol.ts";
import { spawn } from "./spawn.ts";

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
  const [measured] = await Promise.all(seeds.map((seed) => measureOnThread(seed)));
  return measured!;
}

function measureOnThread(seed: LinkSeed): Promise<MeasuredLink> {
  return new Promise((resolve, reject) => {
    const worker = spawn(new URL("./link-worker", import.meta.url), seed);
    worker.on("message", (measured: MeasuredLink) => {
      resolve(measured);
      void worker.terminate();
    });
    worker.on("error", reject);
    worker.on("exit", (code) => {
      reject(new TriremeError("MEASURE", `a measuring thread ended with exit code ${code}`));
    });
  });
}
