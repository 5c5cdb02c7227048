/** A store in memory that can be told to fail. */
import type { CheckpointStore, Snapshot } from "@trireme/runtime";

export class MemoryStore implements CheckpointStore {
  readonly saves = new Map<number, Snapshot>();
  failure: Error | undefined;
  saving = 0;
  mostAtOnce = 0;

  newest(): Promise<number | undefined> {
    return Promise.resolve(this.saves.size === 0 ? undefined : Math.max(...this.saves.keys()));
  }

  load(step: number): Promise<Snapshot> {
    return Promise.resolve(this.saves.get(step)!);
  }

  async save(snapshot: Snapshot): Promise<void> {
    this.saving++;
    this.mostAtOnce = Math.max(this.mostAtOnce, this.saving);
    await new Promise((resolve) => setTimeout(resolve, 2));
    this.saving--;
    if (this.failure !== undefined) throw this.failure;
    this.saves.set(snapshot.step, snapshot);
  }
}
