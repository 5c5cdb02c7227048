/** Which checkpoint a run goes on from: the newest that is whole, or the newest that is healthy too. */
import { TriremeError } from "@trireme/core";
import type { Loader } from "@trireme/dataloader";
import type { ResolvedRun } from "@trireme/run";
import type { RunEvent } from "./event.ts";
import { type Position, type RestoredState, readLoopState } from "./loop-state.ts";
import type { CheckpointStore, Runtime, Snapshot } from "./runtime.ts";
import { isDamaged } from "./store/storage.ts";

/** What a checkpoint is looked for with. */
export interface RestoreContext {
  readonly store: CheckpointStore;
  readonly run: ResolvedRun;
  readonly runtime: Runtime;
  readonly loader: Loader;
  readonly on: (event: RunEvent) => void;
}

/**
 * Restores the newest checkpoint that is whole, falling back past those whose bytes are damaged.
 * @returns Where to go on; undefined where there is no checkpoint.
 * @throws TriremeError "CHECKPOINT" where all there are is damaged (to start anew without a word would
 * lose the run), or where the newest whole one is of another order of samples.
 */
export async function restoreNewest(context: RestoreContext): Promise<RestoredState | undefined> {
  return restoreFrom(context, await stepsOf(context.store));
}

/**
 * Goes back to the newest whole checkpoint after at most `latest` steps, and removes later ones.
 * @throws TriremeError "LOSS" with `reason` where there is none to go back to.
 */
export async function restoreHealthy(
  context: RestoreContext,
  latest: number,
  reason: string,
): Promise<Position> {
  const { store } = context;
  const steps = await stepsOf(store);
  const healthy = steps.filter((step) => step <= latest);
  const refuse = (why: string): TriremeError =>
    new TriremeError("LOSS", `${reason}: training has diverged, and ${why}`);
  if (healthy.length === 0) {
    throw refuse(`no checkpoint of step ${latest} or before is there to go back to`);
  }
  if (store.discardAfter === undefined && healthy.length < steps.length) {
    throw refuse("the store cannot remove the checkpoints taken since");
  }
  const restored = await restoreFrom(context, healthy);
  // healthy is not empty: something was restored, or all of it was damaged and that was thrown.
  const { step, skipped } = restored!;
  await store.discardAfter?.(step);
  return { step, skipped };
}

async function restoreFrom(
  { store, run, runtime, loader, on }: RestoreContext,
  steps: readonly number[],
): Promise<RestoredState | undefined> {
  const reasons: string[] = [];
  for (const step of steps) {
    let snapshot: Snapshot;
    try {
      snapshot = await store.load(step);
    } catch (error) {
      if (!isDamaged(error)) throw error;
      on({ kind: "damaged", step, reason: error.message });
      reasons.push(error.message);
      continue;
    }
    const restored = readLoopState(snapshot, run, loader);
    await runtime.restore(restored.snapshot);
    return restored;
  }
  if (reasons.length === 0) return undefined;
  throw new TriremeError(
    "CHECKPOINT",
    `no checkpoint is whole: ${reasons.join("; ")}; remove them to start anew`,
  );
}

async function stepsOf(store: CheckpointStore): Promise<readonly number[]> {
  if (store.steps !== undefined) return store.steps();
  const newest = await store.newest();
  return newest === undefined ? [] : [newest];
}
