/**
 * A ring in a file, for ranks in processes of their own. On a file system in memory (`/dev/shm`) reads
 * and writes are copies between memories. There is no waking across processes: a waiter looks again,
 * less and less often, up to every 5 ms.
 */
import { closeSync, ftruncateSync, openSync, readSync, writeSync } from "node:fs";
import { type Ring, type RingRef, type RingShape, type RingStatus, ringStatuses } from "./ring.ts";

/** Each counter has a line of the cache to itself: value and complement, so that a torn read is seen. */
const line = 64;
const [writtenAt, statusAt, takenAt] = [0, 1, 2] as const;

function headBytes({ readers }: RingShape): number {
  return Math.ceil((line * (takenAt + readers.length)) / 4096) * 4096;
}

/** Makes a ring as a new file; one that exists is an error, never taken over. */
export function createFileRing(shape: RingShape, path: string): RingRef {
  const file = openSync(path, "wx+");
  try {
    // Sparse: pages that are not written to are not taken from the machine.
    ftruncateSync(file, headBytes(shape) + 4 * shape.slots * (1 + shape.slotWords));
    for (let k = 0; k < takenAt + shape.readers.length; k++) store(file, k, 0);
  } finally {
    closeSync(file);
  }
  return { ...shape, kind: "file", path };
}

/** A ring over a file. */
export class FileRing implements Ring {
  readonly shape: RingShape;
  readonly #file: number;
  #pause = 0;
  #released = false;

  constructor(ref: RingRef & { readonly kind: "file" }) {
    this.shape = ref;
    this.#file = openSync(ref.path, "r+");
  }

  written(): number {
    return this.#load(writtenAt);
  }

  taken(reader: number): number {
    return this.#load(takenAt + reader);
  }

  status(): RingStatus {
    return this.#released ? "ended" : ringStatuses[this.#load(statusAt)]!;
  }

  write(words: number, fill: (frame: Int32Array) => void): void {
    const frame = this.written();
    // A slot begins with the length of its frame.
    const slot = new Int32Array(1 + words);
    slot[0] = words;
    fill(slot.subarray(1));
    writeAll(this.#file, slot, this.#slotAt(frame));
    store(this.#file, writtenAt, frame + 1);
    this.#pause = 0;
  }

  take(reader: number): Int32Array {
    const number = this.taken(reader);
    const length = new Int32Array(1);
    readAll(this.#file, length, this.#slotAt(number));
    const frame = new Int32Array(length[0]!);
    readAll(this.#file, frame, this.#slotAt(number) + 4);
    store(this.#file, takenAt + reader, number + 1);
    this.#pause = 0;
    return frame;
  }

  close(status: "ended" | "failed"): void {
    store(this.#file, statusAt, ringStatuses.indexOf(status));
  }

  changes(): number {
    return 0;
  }

  changed(_seen: number, ms: number): Promise<void> {
    this.#pause = Math.min(5, this.#pause + 0.5);
    return new Promise((resolve) => setTimeout(resolve, Math.min(ms, this.#pause)));
  }

  release(): void {
    if (this.#released) return;
    this.#released = true;
    closeSync(this.#file);
  }

  /** A counter; 0 once released, as the descriptor may by now be another file's. */
  #load(counter: number): number {
    return this.#released ? 0 : load(this.#file, counter);
  }

  #slotAt(frame: number): number {
    const { slots, slotWords } = this.shape;
    return headBytes(this.shape) + 4 * (frame % slots) * (1 + slotWords);
  }
}

function store(file: number, counter: number, value: number): void {
  writeAll(file, Int32Array.of(value, ~value), line * counter);
}

function load(file: number, counter: number): number {
  const words = new Int32Array(2);
  for (;;) {
    readAll(file, words, line * counter);
    if (words[0] === ~words[1]!) return words[0];
  }
}

function readAll(file: number, into: Int32Array, at: number): void {
  const bytes = new Uint8Array(into.buffer, into.byteOffset, into.byteLength);
  for (let done = 0; done < bytes.length;) {
    const got = readSync(file, bytes, done, bytes.length - done, at + done);
    if (got === 0) throw new Error(`the ring's file ends at byte ${at + done}`);
    done += got;
  }
}

function writeAll(file: number, from: Int32Array, at: number): void {
  const bytes = new Uint8Array(from.buffer, from.byteOffset, from.byteLength);
  for (let done = 0; done < bytes.length;)
    done += writeSync(file, bytes, done, bytes.length - done, at + done);
}
