/** Peaks of memory, and whether a layout fits at all. */
import { GB, TriremeError } from "@trireme/core";
import { gpuOverhead, memory } from "@trireme/cost-model";
import { type Plan, defineModel, definePlan } from "@trireme/workload";
import { acceleratorOf } from "./corpus-hardware.ts";
import { describe } from "./corpus-plan.ts";
import { type CorpusRow, number, text } from "./corpus-row.ts";
import type { Group, Outcome } from "./outcome.ts";

const source = "corpus";
const fits: Group = {
  id: "fits",
  source: "corpus, Aleph Alpha grid",
  kind: "fits",
  target: { accuracy: 0.92, balancedAccuracy: 0.9 },
};

/** Outcomes of a row that carries a peak, or that belongs to the grid of layouts that fit or do not; none for others. */
export function memoryOutcomes(row: CorpusRow): Outcome[] {
  const outcomes: Outcome[] = [];
  if (row.dataset === "alephalpha") outcomes.push(fitsOutcome(row));
  const peak = peakBytes(row);
  if (peak !== undefined) outcomes.push(peakOutcome(row, peak));
  return outcomes;
}

function peakBytes(row: CorpusRow): number | undefined {
  const decimal = number(row.measured, "peak_mem_gb");
  // torchtitan prints GiB under that name.
  if (decimal !== undefined) return row.dataset === "torchtitan" ? decimal * 2 ** 30 : GB(decimal);
  const binary = number(row.measured, "peak_mem_gib") ?? number(row.measured, "peak_reserved_gib");
  return binary === undefined ? undefined : binary * 2 ** 30;
}

function fitsOutcome(row: CorpusRow): Outcome {
  const a = acceleratorOf(text(row.hardware, "gpu"));
  const needed = neededBytes(row);
  if (typeof needed === "string") return { group: fits, id: row.id, skipped: needed };
  if (a === undefined) return { group: fits, id: row.id, skipped: "missing: accelerator" };
  const measured = row.measured["oom"] === true ? 0 : 1;
  const predicted = needed.total <= a.memory ? 1 : 0;
  return {
    group: fits,
    id: row.id,
    measured,
    predicted,
    detail: `needs ${(needed.total / 2 ** 30).toFixed(1)} GiB`,
  };
}

function peakOutcome(row: CorpusRow, peak: number): Outcome {
  const sure = row.complete && row.confidence !== "low";
  const group: Group = sure
    ? { id: "peak-memory", source, kind: "peak memory", target: { medianError: 0.08 } }
    : { id: "peak-memory-unsure", source, kind: "peak memory" };
  const needed = neededBytes(row);
  if (typeof needed === "string") return { group, id: row.id, skipped: needed };
  // Megatron-LM's functional tests log the last pipeline rank.
  const rank = row.dataset === "megatron_golden" ? needed.ranks.at(-1)! : needed;
  // Frameworks report what their allocator handed out (or, torchtitan, holds); only the device itself counts the rest.
  const wholeDevice = /nvidia-smi|as seen on gpu/i.test(row.notes);
  const tensors = rank.total - rank.overhead;
  const held = tensors + gpuOverhead.fragmentation * (rank.activations + rank.workspace);
  const predicted = wholeDevice ? rank.total : row.dataset === "torchtitan" ? held : tensors;
  const a = acceleratorOf(text(row.hardware, "gpu"));
  return {
    group,
    id: row.id,
    measured: peak,
    predicted,
    ...(a === undefined ? {} : { claim: { kind: "memory", accelerator: a } }),
  };
}

function neededBytes(row: CorpusRow): ReturnType<typeof memory> | string {
  const described = describe(row);
  if (typeof described === "string") return described;
  try {
    const model = defineModel(described.model);
    const plan: Plan = definePlan(model, described.plan);
    return memory({ model, plan, overhead: { ...gpuOverhead, ...lossOf(row) } });
  } catch (error) {
    if (error instanceof TriremeError) return `refused: ${error.message}`;
    throw error;
  }
}

/**
 * What PyTorch's cross entropy holds for each logit. Run as it is: log-probabilities, their gradient and that
 * of the logits, each in 32 bits. Compiled: the logits and their gradient in 16 bits. torchtitan compiles it with
 * the model since April 2025 (pull request 1033; 996 before it shows 7.3 GiB less for the same model).
 */
function lossOf(row: CorpusRow): { readonly perLogit?: number } {
  if (row.dataset !== "torchtitan") return {};
  const early = row.id.startsWith("tt-2024") || row.notes.includes("torchtitan 0.0.2");
  const compiled = text(row.parallel, "compile") === "true" && !early;
  return { perLogit: compiled ? 4 : 12 };
}
