/**
 * What NVIDIA's scripts say where a table of dgxc-benchmarking gives parallel degrees only: the `configure.sh`,
 * `launch.sh` and YAML of a release there, and `scripts/performance/llm` of the NeMo that it pins.
 */
import type { PlanOptions } from "@trireme/workload";
import { type CorpusRow, text } from "./corpus-row.ts";

/** What the scripts decide. */
export type NemoPlan = Pick<PlanOptions, "expertCapacity" | "cudaGraphs" | "overlapTensorParallel">;

/** The script behind a row with experts; nothing for other tables. */
export function nemoPlan(row: CorpusRow): NemoPlan {
  if (row.dataset !== "dgxc") return {};
  const name = text(row.model, "name");
  const gpu = text(row.hardware, "gpu");
  const fp8 = text(row.parallel, "precision").startsWith("fp8");
  // From 25.05 on Grok's launch.sh records graphs on Blackwell, Llama 4's in 8 bits on Hopper.
  const later = (/^dgxc-v(\d+\.\d+)/.exec(row.id)?.[1] ?? "") >= "25.05";
  const grok = name.includes("grok") && /^g?b\d/.test(gpu);
  const llama = name.includes("llama4") && gpu.startsWith("h100") && fp8;
  return {
    // All of them drop what is beyond an even share, and pad to it (MegatronTokenDropCallback).
    expertCapacity: 1,
    ...(later && (grok || llama) ? { cudaGraphs: "all" } : {}),
    // pretrain_deepseek_v3.py: tp_comm_overlap=False.
    ...(name.includes("deepseek") ? { overlapTensorParallel: false } : {}),
  };
}

/** What the same scripts say of dense models. */
export type DensePlan = Pick<PlanOptions, "dropout" | "flashAttention" | "recompute">;

/**
 * The script behind a dense row: NeMo's YAML of GPT-3 drops a tenth of hidden units and of attention. Paxml's
 * configure.sh turns cuDNN's attention off; its 5B keeps products alone, its 175B queries, keys, values and projections,
 * of which recomputing attention is the nearer. MaxText's keeps all or part of what is in front of the feed-forward block and computes
 * the rest again, about half of a layer: the nearest is the policy that keeps every other product.
 */
export function densePlan(row: CorpusRow): DensePlan {
  if (row.dataset !== "dgxc") return {};
  const name = text(row.model, "name");
  const framework = text(row.parallel, "framework");
  if (framework.startsWith("paxml")) {
    const small = name === "gpt3-5b";
    return { flashAttention: false, recompute: small ? "rematerialise" : "selective" };
  }
  if (framework.startsWith("maxtext")) return { recompute: "operators" };
  return name.startsWith("gpt3") ? { dropout: 0.1 } : {};
}
