/**
 * Pipelines that carry a large vocabulary (arXiv 2411.05288, Tables 5 and 6), by whole estimates: on the last stage, with layers
 * redistributed for it, and split over all stages in three ways.
 */
import { memory } from "@trireme/cost-model";
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
import type { Outcome } from "./outcome.ts";
import { predictStep } from "./predict-step.ts";

/** Where a row's vocabulary is: what it says, and what that is here. */
type Placement = readonly [RegExp, string, string, PlanOptions["vocabulary"]?];
const placements: readonly Placement[] = [
  [/naive/, "", "vocabulary on the last stage"],
  [/redistributed/, "-redistributed", "layers redistributed for the vocabulary"],
  [/algorithm 1/, "-two-barriers", "vocabulary split with two barriers", "two-barriers"],
  [/algorithm 2/, "-one-barrier", "vocabulary split with one barrier", "one-barrier"],
  [/interlaced/, "-interlaced", "vocabulary split and interlaced", "interlaced"],
];

/** The outcomes of a row with a large vocabulary: of its step, and of its peak of memory. */
export function vocabularyOutcomes(row: CorpusRow): Outcome[] {
  const sure = row.confidence === "high" && row.complete;
  const stated = text(row.parallel, "vocab_placement");
  const placement = placements.find(([pattern]) => pattern.test(stated));
  const [, id, kind] = placement ?? placements[0]!;
  const suffix = sure ? "" : "-unsure";
  const group = {
    id: `schedule-vocabulary${id}${suffix}`,
    source: "corpus",
    kind: `iteration time, ${kind}`,
  };
  const skip = (reason: string): Outcome[] => [{ group, id: row.id, skipped: reason }];
  if (stated === "") return skip("missing: profile");
  if (placement === undefined) return skip(`not covered: ${stated}`);
  const described = describe(row);
  if (typeof described === "string") return skip(described);
  const cluster = clusterOf(row);
  if (typeof cluster === "string") return skip(cluster);
  const model = defineModel(described.model);
  const plan = planOf(row, model, described.plan, placement);
  const seconds = number(row.derived, "iter_s");
  return [
    ...(seconds === undefined
      ? skip("missing: iteration time")
      : [
          predictStep(
            group,
            row.id,
            seconds,
            () => model,
            plan,
            () => cluster,
          ),
        ]),
    ...peakOutcomes(row, suffix, model, plan),
  ];
}

function planOf(
  row: CorpusRow,
  model: Model,
  described: PlanOptions,
  [, id, , vocabulary]: Placement,
): PlanOptions {
  const schedule = text(row.parallel, "schedule") === "v-half" ? "v-half" : "1f1b";
  const plan = {
    ...described,
    ...fork,
    schedule,
    ...(vocabulary === undefined ? {} : { vocabulary }),
  } as const;
  return id === "-redistributed" ? { ...plan, stageLayers: redistributed(model, plan) } : plan;
}

/** The largest peak of all devices, as PyTorch counts it; the authors print MiB over 1024 as GB (artifact/show_result_full_exp.py). As many rows of one source, all alike, make no interval. */
function peakOutcomes(
  row: CorpusRow,
  suffix: string,
  model: Model,
  options: PlanOptions,
): Outcome[] {
  const peak = number(row.measured, "peak_mem_gb");
  if (peak === undefined) return [];
  const needed = memory({ model, plan: definePlan(model, options) });
  return [
    {
      group: { id: `schedule-memory${suffix}`, source: "corpus", kind: "peak memory" },
      id: `${row.id}#peak`,
      measured: peak * 2 ** 30,
      predicted: needed.total - needed.overhead,
      detail: `pipeline rank ${needed.rank}`,
    },
  ];
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
