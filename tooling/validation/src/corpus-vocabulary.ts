/**
 * Pipelines that carry a large vocabulary (arXiv 2411.05288, Tables 5 and 6), by whole estimates: on the last stage, with layers
 * redistributed for it, and split over all stages in three ways.
 */
import {
  type Model,
  type PlanOptions,
  defineModel,
  definePlan,
  elementFlops,
} from "@trireme/workload";
import { clusterOf } from "./corpus-hardware.ts";
import { describe } from "./corpus-plan.ts";
import { type CorpusRow, number, text } from "./corpus-row.ts";
import type { Group, Outcome } from "./outcome.ts";
import { predictStep } from "./predict-step.ts";

/** Where a row's vocabulary is: what it says, and what that is here. */
const placements: readonly (readonly [RegExp, string, string, PlanOptions["vocabulary"]?])[] = [
  [/naive/, "", "vocabulary on the last stage"],
  [/redistributed/, "-redistributed", "layers redistributed for the vocabulary"],
  [/algorithm 1/, "-two-barriers", "vocabulary split with two barriers", "two-barriers"],
  [/algorithm 2/, "-one-barrier", "vocabulary split with one barrier", "one-barrier"],
  [/interlaced/, "-interlaced", "vocabulary split and interlaced", "interlaced"],
];

/** The outcome of a step with a large vocabulary. */
export function vocabularyStep(row: CorpusRow): Outcome {
  const sure = row.confidence === "high" && row.complete;
  const stated = text(row.parallel, "vocab_placement");
  const placement = placements.find(([pattern]) => pattern.test(stated));
  const [, id, kind, vocabulary] = placement ?? placements[0]!;
  const group: Group = {
    id: `schedule-vocabulary${id}${sure ? "" : "-unsure"}`,
    source: "corpus",
    kind: `iteration time, ${kind}`,
  };
  const skip = (reason: string): Outcome => ({ group, id: row.id, skipped: reason });
  if (placement === undefined) return skip(`not covered: ${stated || "no profile"}`);
  const seconds = number(row.derived, "iter_s");
  if (seconds === undefined) return skip("missing: iteration time");
  const described = describe(row);
  if (typeof described === "string") return skip(described);
  const cluster = clusterOf(row);
  if (typeof cluster === "string") return skip(cluster);
  const model = defineModel(described.model);
  const schedule = text(row.parallel, "schedule") === "v-half" ? "v-half" : "1f1b";
  const plan = {
    ...described.plan,
    ...fork,
    schedule,
    ...(vocabulary === undefined ? {} : { vocabulary }),
  } as const;
  return predictStep(
    group,
    row.id,
    seconds,
    () => model,
    id === "-redistributed" ? { ...plan, stageLayers: redistributed(model, plan) } : plan,
    () => cluster,
  );
}

/**
 * The authors' fork of Megatron-LM (sail-sg/VocabularyParallelism): its loss is of elementary operations
 * (tensor_parallel/cross_entropy.py), and its scripts train with --fp16, which keeps gradients in 16 bits.
 */
const fork = { fusedLoss: false, gradientPrecision: "fp16" } as const;

/**
 * As the fork redistributes layers: the last stage gets what evens FLOPs out, rounded up (the number that the authors' table has,
 * artifact/exp_one_host.csv), the others even shares, the larger ones last (transformer_block.py).
 */
function redistributed(m: Model, options: PlanOptions): readonly number[] {
  const plan = definePlan(m, options);
  const flops = elementFlops(m, plan);
  const [layer, head] = [flops[1]!, flops[m.layers + 1]! / flops[1]!];
  const even = flops.reduce((a, b) => a + b) / layer / plan.pp;
  const last = Math.max(0, Math.ceil(even - head));
  const others = plan.pp - 1;
  const base = Math.floor((m.layers - last) / others);
  const larger = (m.layers - last) % others;
  const rest = Array.from({ length: others }, (_, i) => base + (i >= others - larger ? 1 : 0));
  return [...rest, last];
}
