/**
 * Memory that snapshots are copied into, kept from save to save: fresh memory costs a page fault every
 * 4 KiB, several times what the copy into it costs, and training would wait for that at every save.
 */
import type { Bytes } from "@trireme/core";

/** A file of a snapshot before there is one. */
export interface SnapshotSize {
  readonly name: string;
  readonly size: Bytes;
}

/** Holds one snapshot at a time; shared memory, so that threads may copy into it. */
export class SnapshotBuffer {
  readonly #memory = new Map<string, SharedArrayBuffer>();

  /**
   * Memory of `size` bytes for the file `name`, the same as last time where that is large enough. It
   * holds whatever was put there before.
   */
  take(name: string, size: Bytes): Uint8Array<SharedArrayBuffer> {
    let memory = this.#memory.get(name);
    if (memory === undefined || memory.byteLength < size) {
      memory = new SharedArrayBuffer(size);
      this.#memory.set(name, memory);
    }
    return new Uint8Array(memory, 0, size);
  }

  /** Makes memory for all of these and writes to each page of it, so that the first snapshot need not. */
  reserve(files: Iterable<SnapshotSize>): void {
    for (const { name, size } of files) this.take(name, size).fill(0);
  }
}
