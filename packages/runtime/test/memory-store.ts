/** A store in memory that can be told to fail. */
import { TriremeError } from "@trireme/core";
import type { CheckpointStore, Snapshot } from "@trireme/runtime";

export class MemoryStore implements CheckpointStore {
  readonly saves = new Map<number, Snapshot>();
  /** What is wrong with which. */
  readonly damaged = new Map<number, string>();
  failure: Error | undefined;
  saving = 0;
  mostAtOnce = 0;

  newest(): Promise<number | undefined> {
    return Promise.resolve(this.saves.size === 0 ? undefined : Math.max(...this.saves.keys()));
  }

  steps(): Promise<readonly number[]> {
    return Promise.resolve([...this.saves.keys()].sort((a, b) => b - a));
  }

  load(step: number): Promise<Snapshot> {
    const broken = this.damaged.get(step);
    if (broken !== undefined) return Promise.reject(new TriremeError("DAMAGED", broken));
    return Promise.resolve(this.saves.get(step)!);
  }

  discardAfter(step: number): Promise<void> {
    for (const saved of this.saves.keys()) if (saved > step) this.saves.delete(saved);
    return Promise.resolve();
  }

  async save(snapshot: Snapshot): Promise<void> {
    this.saving++;
    this.mostAtOnce = Math.max(this.mostAtOnce, this.saving);
    await new Promise((resolve) => setTimeout(resolve, 2));
    this.saving--;
    if (this.failure !== undefined) throw this.failure;
    // A real store writes: what is copied into the buffer later must not change what was saved.
    const files = snapshot.files.map(({ name, bytes }) => ({ name, bytes: bytes.slice() }));
    this.saves.set(snapshot.step, { step: snapshot.step, files });
  }
}
