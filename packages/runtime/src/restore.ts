/** Which checkpoint a run goes on from: the newest that is whole, or the newest that is healthy too. */
import { TriremeError } from "@trireme/core";
import type { Loader } from "@trireme/dataloader";
import type { ResolvedRun } from "@trireme/run";
import type { RunEvent } from "./event.ts";
import { type RestoredState, readLoopState } from "./loop-state.ts";
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
 * Goes back to the newest whole checkpoint after at most `latest` steps, of which there is one, and removes
 * later ones. Returns the steps done there.
 * @throws TriremeError "CHECKPOINT" as `restoreNewest` does, and where the store cannot remove any.
 */
export async function restoreBefore(context: RestoreContext, latest: number): Promise<number> {
  const { store } = context;
  const steps = await stepsOf(store);
  const earlier = steps.filter((step) => step <= latest);
  if (store.discardAfter === undefined && earlier.length < steps.length) {
    throw new TriremeError(
      "CHECKPOINT",
      `the run goes back to step ${latest}, but its store cannot remove later checkpoints`,
    );
  }
  const restored = await restoreFrom(context, earlier);
  if (restored === undefined) {
    throw new TriremeError("CHECKPOINT", `the checkpoint of step ${latest} has vanished`);
  }
  await store.discardAfter?.(restored.step);
  return restored.step;
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

/** Steps of the complete checkpoints, newest first. */
export async function stepsOf(store: CheckpointStore): Promise<readonly number[]> {
  if (store.steps !== undefined) return store.steps();
  const newest = await store.newest();
  return newest === undefined ? [] : [newest];
}
