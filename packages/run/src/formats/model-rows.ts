/** Settings of the group `model` that NeMo and Megatron-Bridge name alike, after Megatron-Core's own fields. */
import type { Row } from "./megatron-tree.ts";

/** A setting of the group `model`. */
export function modelRow(path: string, option: string, kind?: Row["kind"]): Row {
  return { path: `model.${path}`, option, ...(kind === undefined ? {} : { kind }) };
}

/** The settings that both have under the same name. */
export const modelRows: readonly Row[] = [
  modelRow("num_layers", "num-layers"),
  modelRow("hidden_size", "hidden-size"),
  modelRow("num_attention_heads", "num-attention-heads"),
  modelRow("num_query_groups", "num-query-groups"),
  modelRow("kv_channels", "kv-channels"),
  modelRow("ffn_hidden_size", "ffn-hidden-size"),
  modelRow("make_vocab_size_divisible_by", "make-vocab-size-divisible-by"),
  modelRow("max_position_embeddings", "max-position-embeddings"),
  modelRow("position_embedding_type", "position-embedding-type"),
  modelRow("rotary_base", "rotary-base"),
  modelRow("layernorm_epsilon", "norm-epsilon"),
  modelRow("qk_layernorm", "qk-layernorm", "flag"),
  modelRow("share_embeddings_and_output_weights", "untie-embeddings-and-output-weights", "inverse"),
  modelRow("num_moe_experts", "num-experts"),
  modelRow("moe_router_topk", "moe-router-topk"),
  modelRow("moe_router_score_function", "moe-router-score-function"),
  modelRow("moe_router_pre_softmax", "moe-router-pre-softmax", "flag"),
  modelRow("moe_router_load_balancing_type", "moe-router-load-balancing-type"),
  modelRow("moe_aux_loss_coeff", "moe-aux-loss-coeff"),
  modelRow("moe_z_loss_coeff", "moe-z-loss-coeff"),
  modelRow("moe_router_topk_scaling_factor", "moe-router-topk-scaling-factor"),
  modelRow("moe_router_num_groups", "moe-router-num-groups"),
  modelRow("moe_router_group_topk", "moe-router-group-topk"),
  modelRow("tensor_model_parallel_size", "tensor-model-parallel-size"),
  modelRow("pipeline_model_parallel_size", "pipeline-model-parallel-size"),
  modelRow("virtual_pipeline_model_parallel_size", "num-virtual-stages-per-pipeline-rank"),
  modelRow(
    "account_for_embedding_in_pipeline_split",
    "account-for-embedding-in-pipeline-split",
    "flag",
  ),
  modelRow("account_for_loss_in_pipeline_split", "account-for-loss-in-pipeline-split", "flag"),
  modelRow("context_parallel_size", "context-parallel-size"),
  modelRow("expert_model_parallel_size", "expert-model-parallel-size"),
  modelRow("moe_grouped_gemm", "moe-grouped-gemm", "flag"),
  modelRow("sequence_parallel", "sequence-parallel", "flag"),
  modelRow("masked_softmax_fusion", "no-masked-softmax-fusion", "inverse"),
  modelRow("apply_rope_fusion", "no-rope-fusion", "inverse"),
  modelRow("hidden_dropout", "hidden-dropout"),
  modelRow("attention_dropout", "attention-dropout"),
];
