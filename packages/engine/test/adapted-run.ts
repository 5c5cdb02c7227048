/** Small runs that train adapters of every matrix. */
import type { ResolvedRun } from "@trireme/run";
import type { AdapterTarget, ModelOptions } from "@trireme/workload";
import { gpt, llama } from "./equality.ts";
import { type Degrees, smallRun } from "./small-run.ts";

const attentionTargets = ["query", "key", "value", "output"] as const;

/** Forms of models, and all that adapters may change in them. */
export const adaptedForms: readonly (readonly [
  string,
  Partial<ModelOptions>,
  readonly AdapterTarget[],
])[] = [
  ["GPT-2", gpt, [...attentionTargets, "up", "down"]],
  ["Llama", llama, [...attentionTargets, "gate", "up", "down"]],
];

/** The small run of this form with adapters of rank 3. */
export function adapted(
  form: Partial<ModelOptions>,
  targets: readonly AdapterTarget[],
  plan: Degrees = {},
): ResolvedRun {
  return smallRun(plan, { ...form, adapter: { rank: 3, targets } });
}
