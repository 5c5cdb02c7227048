/**
 * What is trained and how in fine-tuning with adapters, where a table says no more than "lora": by the scripts behind it.
 *
 * - MLPerf's llama2_70b_lora: NVIDIA's `conf/megatron_gpt_peft_tuning_config.yaml` of round 4.0 and NeMo's
 *   `scripts/performance/llm/mlperf_lora_llama2_70b.py` of round 4.1, which other submitters run too: rank 16 beside
 *   linear_qkv and linear_proj, dropout 0.1, frozen matrices in 8 bits (fp8_params), and attention to all earlier tokens of a
 *   packed sample, whichever document they are of (return_cu_seqlen false).
 * - Llama 3 in NeMo (`recipes/llama3_70b.py`, `llama3_8b.py`) and Megatron-Bridge (`perf_recipes/llama`): linear_qkv alone.
 * - Megatron-Bridge's model cards say what they adapt.
 * - NeMo Automodel, `examples/llm_benchmark`, *_peft_benchmark.yaml: rank 16 beside all projections, layers
 *   compiled, activation checkpointing.
 */
import type { AdapterTarget, ModelOptions, PlanOptions } from "@trireme/workload";
import { type CorpusRow, text } from "./corpus-row.ts";

/**
 * Tokens of a sample of SQuAD 1.1 in NeMo's form ("Context: … Question: … Answer: …"), of which NeMo's and Megatron-Bridge's
 * fine-tuning packs as many as fit, with a mask for each: 79.3 MB of 87,599 samples (its card on the Hugging Face hub), a token
 * in 4.4 bytes of English.
 */
const squad = 200;

/** Samples that are packed from documents, in fine-tuning with adapters or of all. */
export function packedPlan(row: CorpusRow): Pick<PlanOptions, "document"> {
  if (!/lora|sft/.test(text(row.parallel, "task")) || row.id.includes("long_context")) return {};
  const tuned = row.dataset === "dgxc" || row.dataset === "mbridge";
  return tuned || row.notes.includes("offline packing") ? { document: squad } : {};
}

/** Whether a row trains adapters. */
function isAdapted(row: CorpusRow): boolean {
  return text(row.parallel, "task").includes("lora");
}

/** The adapter of a row; undefined where all is trained. */
export function adapterOf(row: CorpusRow): ModelOptions["adapter"] {
  if (!isAdapted(row)) return undefined;
  if (row.dataset === "mlperf") {
    return { rank: 16, targets: ["qkv", "output"], base: "fp8", dropout: 0.1 };
  }
  if (row.dataset === "mbridge_cards") return { rank: 8, targets: cardTargets(row) };
  if (row.dataset === "misc") {
    return {
      rank: 16,
      targets: ["query", "key", "value", "output", "gate", "up", "down"],
    };
  }
  return { rank: text(row.model, "name").includes("8b") ? 8 : 16, targets: ["qkv"] };
}

function cardTargets(row: CorpusRow): readonly AdapterTarget[] {
  return row.notes.includes("linear_kv_down_proj")
    ? ["query", "key-value-down", "key-value-up", "output"]
    : ["qkv", "output"];
}

/** What the scripts say of the plan. */
export function adapterPlan(row: CorpusRow): Partial<PlanOptions> {
  if (!isAdapted(row)) return {};
  if (row.dataset === "misc") {
    return { recompute: "full", fusedNorm: true, fusedElementwise: true };
  }
  if (text(row.hardware, "gpu").startsWith("amd")) return amdPlan(row);
  const attention = text(row.parallel, "attention_impl").includes("fp8 dpa");
  return {
    ...(row.parallel["cuda_graph"] === true ? { cudaGraphs: "all" } : {}),
    ...(attention ? { attentionPrecision: "fp8" } : {}),
    // Later rounds of MLPerf keep a sample's activations on one device, which hold it only so.
    ...(row.dataset === "mlperf" && !row.id.startsWith("mlperf4.0")
      ? { activationPrecision: "fp8" }
      : {}),
  };
}

/**
 * AMD's config_MI300X_1x8x1.sh, which its MI35x runs too, computes 21 of the layers again (ACG full, ACM block, ACL 21) and keeps
 * activations in 8 bits (FP8_ACTIVATION) but not attention's (FP8_DPA 0); submitters of its parts ship NVIDIA's files beside it.
 */
function amdPlan(row: CorpusRow): Partial<PlanOptions> {
  const again =
    text(row.parallel, "recompute") === "full" || text(row.hardware, "gpu").includes("mi300x");
  return {
    activationPrecision: "fp8",
    ...(again ? { recompute: "full", recomputeLayers: 21 } : {}),
  };
}
