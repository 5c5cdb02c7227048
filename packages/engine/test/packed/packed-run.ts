/** Fine-tuning beside a base in fewer bits, from weights that a run in full has learnt. */
import type { Snapshot } from "@trireme/runtime";
import type { Adapter, ModelOptions } from "@trireme/workload";
import { llama } from "../equality.ts";
import {
  type Degrees,
  smallBatch,
  smallRun,
  takeSnapshot,
  trainSteps,
  withRuntime,
} from "../small-run.ts";

/** Whole blocks of 64 inputs for each of two ranks. */
export const blockForm: Partial<ModelOptions> = { ...llama, layers: 2, hidden: 128, ffn: 256 };

/** A model that has learnt something, as of step 0. */
export function pretrained(form: Partial<ModelOptions>, steps = 12): Promise<Snapshot> {
  return withRuntime(smallRun({}, form), async (runtime) => {
    await trainSteps(runtime, 0, steps);
    return { ...(await takeSnapshot(runtime)), step: 0 };
  });
}

/** What fine-tuning gave. */
export interface Tuned {
  /** Before the first step. */
  readonly start: number;
  readonly losses: readonly number[];
  readonly gradients: ReadonlyMap<string, Float32Array>;
  readonly snapshot: Snapshot;
}

/** Fine-tunes all attention for eight steps; `from` is restored first where it is given. */
export function tune(
  form: Partial<ModelOptions>,
  base: Adapter["base"],
  degrees: Degrees,
  from?: Snapshot,
): Promise<Tuned> {
  const adapter = { rank: 4, targets: ["query", "key", "value", "output"], base } as const;
  return withRuntime(smallRun(degrees, { ...form, adapter }), async (runtime) => {
    if (from !== undefined) await runtime.restore(from);
    const { loss: start } = await runtime.evaluate(smallBatch(50));
    const losses = await trainSteps(runtime, 0, 2);
    const gradients = await runtime.gradients();
    losses.push(...(await trainSteps(runtime, 2, 8)));
    return { start, losses, gradients, snapshot: await takeSnapshot(runtime) };
  });
}
