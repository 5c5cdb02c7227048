/** Waiting for a ring: with a deadline, and with the name of who is waited for. */
import { type Seconds, TriremeError } from "@trireme/core";
import { FileRing } from "./file-ring.ts";
import type { Ring, RingRef } from "./ring.ts";
import { SharedRing } from "./shared-ring.ts";

/** Opens a ring that was made elsewhere. */
export function openRing(ref: RingRef): Ring {
  return ref.kind === "shared" ? new SharedRing(ref) : new FileRing(ref);
}

/** Frames taken by all readers. */
function takenByAll(ring: Ring): number {
  return ring.shape.readers.reduce((least, _, r) => Math.min(least, ring.taken(r)), Infinity);
}

/** Waits until a step's slot is free. @throws TriremeError "RING" that names the ranks that hold it. */
export async function roomFor(ring: Ring, step: number, seconds: Seconds): Promise<void> {
  const { firstStep, slots, readers, name } = ring.shape;
  const free = (): boolean => step - firstStep - takenByAll(ring) < slots;
  if (await until(ring, free, seconds)) return;
  if (ring.status() !== "open")
    throw new TriremeError("RING", `${name} was closed before step ${step}`);
  const frame = step - firstStep - slots;
  const late = readers.filter((_, r) => ring.taken(r) <= frame);
  throw new TriremeError(
    "RING",
    `rank ${late.join(", ")} has not taken step ${firstStep + frame} of ${name} for ${seconds} s`,
  );
}

/** Waits for the next frame of a reader; undefined at the end of a closed ring. */
export async function nextFrame(
  ring: Ring,
  reader: number,
  seconds: Seconds,
  signal?: AbortSignal,
): Promise<Int32Array | undefined> {
  const there = (): boolean => ring.written() > ring.taken(reader);
  if (await until(ring, there, seconds, signal)) return ring.take(reader);
  const { name, firstStep, readers } = ring.shape;
  if (ring.status() === "ended") return undefined;
  if (ring.status() === "failed") {
    throw new TriremeError(
      "RING",
      `the loader of ${name} gave up before step ${firstStep + ring.taken(reader)}; its host says why`,
    );
  }
  throw new TriremeError(
    "RING",
    `the data constructor of ${name} has not delivered step ${firstStep + ring.taken(reader)} to rank ${readers[reader]} for ${seconds} s; its last was ${ring.written() === 0 ? "none" : firstStep + ring.written() - 1}`,
  );
}

/** True when the condition holds; false when the ring is closed or time is up without it. */
async function until(
  ring: Ring,
  condition: () => boolean,
  seconds: Seconds,
  signal?: AbortSignal,
): Promise<boolean> {
  if (!(seconds > 0))
    throw new TriremeError(
      "RING",
      `a deadline of ${seconds} s for ${ring.shape.name}; use more than 0`,
    );
  const end = performance.now() + seconds * 1000;
  for (;;) {
    const seen = ring.changes();
    signal?.throwIfAborted();
    if (condition()) return true;
    const left = end - performance.now();
    // What was written before closing counts.
    if (ring.status() !== "open" || left <= 0) return condition();
    // A signal is looked at ten times a second.
    await ring.changed(seen, Math.min(left, signal === undefined ? 1000 : 100));
  }
}
