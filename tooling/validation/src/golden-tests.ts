/** What Megatron-LM's functional tests set beside what the rows of their golden values say. */
import type { PlanOptions } from "@trireme/workload";
import type { CorpusRow } from "./corpus-row.ts";

/** Tests whose model_config.yaml (Megatron-LM d98e8a64dd, tests/functional_tests/test_cases) sets both dropouts to 0. */
const withoutDropout: ReadonlySet<string> = new Set([
  "deepseek_proxy_fsdp_ep2_fsdp2_1node",
  "deepseek_proxy_fsdp_ep2_fsdp2_ep_overlap",
  "deepseekv3_proxy_flex_tp1pp4emp16etp1cp1_release",
  "deepseekv3_proxy_flex_tp2pp2emp16etp1cp1_gb_200_release",
  "gpt3_15b_8t_release",
  "gpt3_15b_8t_release_sm_gb200",
  "gpt3_mcore_cp2_pp2_ep2_te_4experts2parallel_nondeterministic",
  "gpt3_mcore_te_tp2_pp1_resume_torch_dist_cp2_nondeterministic",
  "gpt3_mcore_te_tp2_pp2_cp2",
  "gpt3_mcore_te_tp2_pp2_cp2_etp4_calculate_per_token_loss_dp_last",
  "gpt3_mcore_te_tp2_pp2_cp2_etp4_dp_last_1node",
  "gpt3_mcore_te_tp2_pp2_ep4_etp1_memory_speed",
  "gpt3_moe_mcore_te_tp2_pp2_ep4_etp1_fine_grained_offloading",
  "gpt3_moe_mcore_te_tp2_pp2_ep4_etp1_no_mtp_no_a2a_ovlp_fine_grained_offloading",
  "gpt3_moe_mcore_te_tp4_ep2_etp2_pp2_scoped_cudagraph",
  "gpt3_moe_mcore_te_tp4_ep2_etp2_pp2_scoped_cudagraph_1node",
  "hybrid_flextron_nightly_tp2_pp1_ep2_dgx_h100_1N8G",
  "mixtral_8x22b_tp2pp8ep8vpp1_release",
  "mixtral_8x7b_alltoall_tp2pp4ep4_release",
  "mixtral_8x7b_tp1pp4ep8vpp8_release",
  "nemotron3_5_lightning_no_load_optim_tp1_pp1_cp1_ep4_dgx_gb200_1N4G",
  "nemotron3_super_release_gb200",
]);

/** Dropout of a golden row: 0 where its test says so, else Megatron-LM's default (arguments.py: attention and hidden dropout 0.1). */
export function goldenDropout({ dataset, notes }: CorpusRow): Pick<PlanOptions, "dropout"> {
  if (dataset !== "megatron_golden") return {};
  const test = /test_cases\/[^/]+\/([^/]+)\/model_config/.exec(notes)?.[1];
  return { dropout: test !== undefined && withoutDropout.has(test) ? 0 : 0.1 };
}
