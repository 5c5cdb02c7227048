/**
 * A copy of every step in memory that outlives the rank: in its own host's, and in a peer's
 * (Gemini, SOSP 2023; ByteRobust, SOSP 2025). What is written never replaces the last whole copy;
 * which buffer is spared and what can be recovered are decisions of `@trireme/checkpoint`.
 */
import type { Communicator } from "@trireme/collectives";
import { type CopyBuffers, beginCopy, emptyBuffers, endCopy } from "@trireme/checkpoint";
import type { Bucket } from "./bucket.ts";
import { type Piece, type TensorKind, pieceShapes } from "./pieces.ts";
import { type Tensor, view } from "./tensor.ts";

/** Two copies of one rank's state, in shared memory. */
export interface HeldCopies {
  /** The rank whose state it is. */
  readonly rank: number;
  readonly buffers: readonly [Float32Array, Float32Array];
  /** Step whose whole state each buffer holds; −1 for none. */
  readonly steps: Int32Array;
}

/** What the main thread knows of a rank's copies. */
export interface RankCopies {
  /** In the memory of the rank's host: its own state, and that of the rank it is the peer of. */
  readonly own: HeldCopies;
  readonly held: HeldCopies;
  /** What lies where in a buffer of the rank's own state. */
  readonly layout: readonly CopiedPiece[];
}

/** A piece of a tensor, and where it begins in a buffer. */
interface CopiedPiece extends Omit<Piece, "values"> {
  readonly at: number;
  readonly count: number;
}

const kinds: readonly TensorKind[] = ["value", "firstMoment", "secondMoment"];

export class MemoryCopies {
  readonly copies: RankCopies;
  readonly #communicator: Communicator;
  readonly #memory: WebAssembly.Memory;
  readonly #blocks: readonly Tensor[];
  readonly #peer: number;
  #state: CopyBuffers = emptyBuffers;

  /** @param peer The rank whose memory has this one's copy; @param source The rank whose copy this one has. */
  constructor(
    communicator: Communicator,
    memory: WebAssembly.Memory,
    buckets: readonly Bucket[],
    peer: number,
    source: number,
  ) {
    this.#communicator = communicator;
    this.#memory = memory;
    this.#peer = peer;
    const layout: CopiedPiece[] = [];
    const blocks: Tensor[] = [];
    let size = 0;
    for (const bucket of buckets) {
      for (const kind of kinds) {
        const block = bucket.segment[kind];
        if (block.size === 0) continue;
        for (const piece of pieceShapes(bucket, kind))
          layout.push({ ...piece, at: size + piece.at });
        blocks.push(block);
        size += block.size;
      }
    }
    this.#blocks = blocks;
    const theirs = new Int32Array(1);
    const told = communicator.send(Int32Array.of(size), peer);
    communicator.receive(theirs, source).wait();
    told.wait();
    const own = heldCopies(communicator.rank, size);
    this.copies = { own, held: heldCopies(source, theirs[0]!), layout };
  }

  /** Copies the state after so many steps, here and to the peer; whole on both when it returns. */
  copy(step: number): void {
    const { own, held } = this.copies;
    // Every rank had the step before whole when it joined in this step's gradient norm.
    this.#state = beginCopy(this.#state, step, step - 1)!;
    const { buffer } = this.#state.writing!;
    for (const copies of [own, held]) Atomics.store(copies.steps, buffer, -1);
    let at = 0;
    for (const block of this.#blocks) {
      own.buffers[buffer].set(view(this.#memory, block), at);
      at += block.size;
    }
    const sent = this.#communicator.send(own.buffers[buffer], this.#peer);
    this.#communicator.receive(held.buffers[buffer], held.rank).wait();
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

function heldCopies(rank: number, size: number): HeldCopies {
  const buffer = (): Float32Array => new Float32Array(new SharedArrayBuffer(size * 4));
  const steps = new Int32Array(new SharedArrayBuffer(8)).fill(-1);
  return { rank, buffers: [buffer(), buffer()], steps };
}
