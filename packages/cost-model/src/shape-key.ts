/** What of a plan the times of its kernels depend on, as a text: plans with the same key share them. */
import { type Plan, expertReplicas, microbatches } from "@trireme/workload";

/**
 * Fields that place and schedule kernels and messages but do not shape them. Every other field is part of the
 * key, one that a plan gains later too: a needless distinction costs time, a missing one is wrong.
 */
const placing: ReadonlySet<string> = new Set<keyof Plan>([
  "dp",
  "pp",
  "vpp",
  "globalBatch",
  "schedule",
  "stageLayers",
  "accountForEmbedding",
  "accountForLoss",
  "scatterGather",
  "overlapDataParallel",
  "overlapGradientProducts",
  "overlapTensorParallel",
  "overlapPointToPoint",
  "reductionPrecision",
  "gradientExchange",
]);

/**
 * The key. Beside the fields: whether gradients accumulate, whether anything is sharded over replicas, or experts over
 * theirs, and into how many parts a vocabulary is split.
 */
export function shapeKey(p: Plan): string {
  const parts = p.vocabulary === undefined ? "" : ` ${p.pp}`;
  let key = `${microbatches(p) > 1} ${p.dp * p.cp > 1} ${expertReplicas(p) > 1}${parts}`;
  for (const [name, value] of Object.entries<Plan[keyof Plan]>({ ...p })) {
    if (placing.has(name)) continue;
    key += ` ${name} ${typeof value === "object" ? JSON.stringify(value) : value}`;
  }
  return key;
}
