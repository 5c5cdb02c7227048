/**
 * Saving behind training: the snapshot is taken before training goes on (or while it computes, where the
 * runtime can), writing it is not waited for. One save is in flight at a time, as many snapshots are held
 * as there are buffers, and a save that fails fails the run at its next turn, loudly.
 */
import { TriremeError } from "@trireme/core";
import type { Loader } from "@trireme/dataloader";
import type { ResolvedRun } from "@trireme/run";
import type { RunEvent } from "./event.ts";
import { type Position, withLoopState } from "./loop-state.ts";
import { type CheckpointStore, type Runtime, type Snapshot, snapshotBytes } from "./runtime.ts";
import { SnapshotBuffer } from "./snapshot-buffer.ts";

/** What a saver works with. */
export interface SaverOptions {
  readonly store: CheckpointStore;
  readonly run: ResolvedRun;
  readonly loader: Loader;
  readonly on: (event: RunEvent) => void;
  /** Snapshots held at most; one of them is being written. */
  readonly buffers: number;
}

export class Saver {
  readonly #options: SaverOptions;
  /** Buffers that no snapshot is in. */
  readonly #free: SnapshotBuffer[];
  /** Resolves as its snapshot is written; oldest first. Never rejects. */
  readonly #writes: Promise<void>[] = [];
  #failure: Error | undefined;
  #saved: number | undefined;

  constructor(options: SaverOptions) {
    const { buffers } = options;
    if (!Number.isSafeInteger(buffers) || buffers < 1) {
      const rule = "it is an integer of at least 1";
      throw new TriremeError("CHECKPOINT", `snapshotBuffers ${buffers}: ${rule}`);
    }
    this.#options = options;
    this.#free = Array.from({ length: buffers }, () => new SnapshotBuffer());
  }

  /** Makes the memory of all buffers ready, where the runtime says how much it will need. */
  reserve(runtime: Runtime): void {
    const sizes = runtime.snapshotSizes?.() ?? [];
    for (const buffer of this.#free) buffer.reserve(sizes);
  }

  /** Step of the last snapshot taken. */
  get saved(): number | undefined {
    return this.#saved;
  }

  /** Takes a snapshot, once a buffer is free, and starts to write it, once those before are written. */
  async save(runtime: Runtime, { step, skipped }: Position): Promise<void> {
    while (this.#free.length === 0) await this.#writes[0];
    this.check();
    const buffer = this.#free.pop()!;
    let taken: Snapshot;
    try {
      taken = await runtime.snapshot(buffer);
    } catch (error) {
      this.#free.push(buffer);
      throw error;
    }
    if (taken.step !== step) {
      throw new TriremeError(
        "SNAPSHOT",
        `the runtime's snapshot is of step ${taken.step}, but ${step} steps are done`,
      );
    }
    const { run, loader } = this.#options;
    const snapshot = withLoopState(taken, run, loader, skipped);
    this.#saved = step;
    const write = this.#write(snapshot, this.#writes.at(-1)).finally(() => {
      // They end in the order in which they began.
      void this.#writes.shift();
      this.#free.push(buffer);
    });
    this.#writes.push(write);
  }

  /** Waits for the saves in flight, and throws what made one fail. */
  async flush(): Promise<void> {
    while (this.#writes.length > 0) await this.#writes[0];
    this.check();
  }

  /** Throws what made a save fail, without waiting. */
  check(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Waits for the saves in flight and forgets the step saved last, which is no longer to be counted on. */
  async wentBack(): Promise<void> {
    await this.flush();
    this.#saved = undefined;
  }

  async #write(snapshot: Snapshot, before: Promise<void> | undefined): Promise<void> {
    const { store, on } = this.#options;
    try {
      await snapshot.taken;
      await before;
      // After a failure nothing later is written: the run ends at its next turn.
      if (this.#failure !== undefined) return;
      await store.save(snapshot);
      on({ kind: "checkpoint", step: snapshot.step, bytes: snapshotBytes(snapshot) });
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      const message = `the checkpoint of step ${snapshot.step} could not be saved: ${why}`;
      this.#failure ??= new TriremeError("CHECKPOINT", message, { cause: error });
    }
  }
}
