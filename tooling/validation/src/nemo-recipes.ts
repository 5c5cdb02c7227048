/**
 * What NeMo's performance scripts say of experts, where a table of NVIDIA's dgxc-benchmarking gives parallel degrees only: the
 * `configure.sh`, `launch.sh` and YAML of a release there, and `scripts/performance/llm` of the NeMo that it pins.
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
