/**
 * A copy of every step in memory that outlives the rank: in its own host's, and in a peer's
 * (Gemini, SOSP 2023; ByteRobust, SOSP 2025), as the rank's file of a snapshot. What is written never
 * replaces the last whole copy; which buffer is spared and what can be recovered are decisions of
 * `@trireme/checkpoint`.
 */
import type { Communicator } from "@trireme/collectives";
import { type CopyBuffers, beginCopy, emptyBuffers, endCopy } from "@trireme/checkpoint";
import type { StateFile } from "./state-file.ts";

/** Two copies of one rank's file, in shared memory. */
export interface HeldCopies {
  /** The rank whose state it is. */
  readonly rank: number;
  readonly buffers: readonly [SharedArrayBuffer, SharedArrayBuffer];
  /** Step whose whole state each buffer holds; −1 for none. */
  readonly steps: Int32Array;
}

/** In the memory of a rank's host: copies of its own state, and of the rank's whose peer it is. */
export interface RankCopies {
  readonly own: HeldCopies;
  readonly held: HeldCopies;
}

export class MemoryCopies {
  readonly copies: RankCopies;
  readonly #communicator: Communicator;
  readonly #file: StateFile;
  readonly #peer: number;
  #state: CopyBuffers = emptyBuffers;

  /** @param peer The rank whose memory has this one's copy; @param source The rank whose copy this one has. */
  constructor(communicator: Communicator, file: StateFile, peer: number, source: number) {
    this.#communicator = communicator;
    this.#file = file;
    this.#peer = peer;
    const { size } = file.layout;
    const theirs = new Int32Array(1);
    const told = communicator.send(Int32Array.of(Math.ceil(size / 4)), peer);
    communicator.receive(theirs, source).wait();
    told.wait();
    const own = heldCopies(communicator.rank, Math.ceil(size / 4));
    this.copies = { own, held: heldCopies(source, theirs[0]!) };
  }

  /** Copies the state after so many steps, here and to the peer; whole on both when it returns. */
  copy(step: number): void {
    const { own, held } = this.copies;
    // Every rank had the step before whole when it joined in this step's gradient norm.
    this.#state = beginCopy(this.#state, step, step - 1)!;
    const { buffer } = this.#state.writing!;
    for (const copies of [own, held]) Atomics.store(copies.steps, buffer, -1);
    this.#file.write(new Uint8Array(own.buffers[buffer]));
    const sent = this.#communicator.send(new Int32Array(own.buffers[buffer]), this.#peer);
    this.#communicator.receive(new Int32Array(held.buffers[buffer]), held.rank).wait();
    sent.wait();
    for (const copies of [own, held]) Atomics.store(copies.steps, buffer, step);
    this.#state = endCopy(this.#state);
  }

  /** Forgets all copies: after a restore steps count from another one. */
  clear(): void {
    const { own, held } = this.copies;
    for (const { steps } of [own, held]) steps.fill(-1);
    this.#state = emptyBuffers;
  }
}

/** @param words What messages carry: 32 bits each. */
function heldCopies(rank: number, words: number): HeldCopies {
  const buffer = (): SharedArrayBuffer => new SharedArrayBuffer(words * 4);
  const steps = new Int32Array(new SharedArrayBuffer(8)).fill(-1);
  return { rank, buffers: [buffer(), buffer()], steps };
}
