/** Copies shared memory on a thread of its own, so that a snapshot is taken while the next step computes. */
import { Worker } from "node:worker_threads";
import { TriremeError } from "@trireme/core";

/** A range of shared memory and where it goes, of the same length. */
export interface MemoryCopy {
  readonly from: Uint8Array<SharedArrayBuffer>;
  readonly to: Uint8Array<SharedArrayBuffer>;
}

/** The thread: it is so little that it needs no module of its own, and so runs from sources too. */
const thread = `
const { parentPort } = require("node:worker_threads");
parentPort.on("message", ({ id, copies }) => {
  for (const { from, to } of copies) to.set(from);
  parentPort.postMessage(id);
});`;

interface Waiting {
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/**
 * The thread of one runtime: `Snapshot.taken` is what `copy` returns, and the runtime waits for it before
 * its next update.
 */
export class SnapshotCopier {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  #last = 0;
  #gone: Error | undefined;

  constructor() {
    this.#worker = new Worker(thread, { eval: true });
    this.#worker.on("message", (id: number) => {
      this.#waiting.get(id)?.resolve();
      this.#waiting.delete(id);
      if (this.#waiting.size === 0) this.#worker.unref();
    });
    this.#worker.on("error", (error: Error) => this.#end(error));
    this.#worker.on("exit", () =>
      this.#end(new TriremeError("SNAPSHOT", "the thread that copies snapshots has ended")),
    );
    // An idle copier must not keep the process alive.
    this.#worker.unref();
  }

  /**
   * Copies all of these; resolves when they are done.
   * @throws TriremeError "SNAPSHOT" where lengths differ, or the thread has ended.
   */
  copy(copies: readonly MemoryCopy[]): Promise<void> {
    for (const { from, to } of copies) {
      if (from.byteLength === to.byteLength) continue;
      const message = `${from.byteLength} bytes do not go into ${to.byteLength}`;
      return Promise.reject(new TriremeError("SNAPSHOT", message));
    }
    if (this.#gone !== undefined) return Promise.reject(this.#gone);
    const id = ++this.#last;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#worker.ref();
      this.#worker.postMessage({ id, copies });
    });
  }

  /** Ends the thread; copies under way reject. */
  async close(): Promise<void> {
    await this.#worker.terminate();
  }

  #end(error: Error): void {
    this.#gone ??= error;
    for (const { reject } of this.#waiting.values()) reject(this.#gone);
    this.#waiting.clear();
  }
}
