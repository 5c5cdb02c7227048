/**
 * Megatron-Bridge's configuration (megatron/bridge/training/config.py, `ConfigContainer` as YAML): Megatron's
 * settings in groups. Beside the names it differs in how it says activation and precision.
 */
import type { ResolvedRun } from "../resolved.ts";
import { type Imported, entry } from "./interchange.ts";
import { type MegatronTree, type Row, fromTree, put, toTree } from "./megatron-tree.ts";
import { modelRow, modelRows } from "./model-rows.ts";
import { SettingTree } from "./setting-tree.ts";

const rows: readonly Row[] = [
  ...modelRows,
  modelRow("vocab_size", "vocab-size"),
  modelRow("rotary_percent", "rotary-percent"),
  modelRow("normalization", "normalization"),
  modelRow("add_bias_linear", "disable-bias-linear", "inverse"),
  modelRow("add_qkv_bias", "add-qkv-bias", "flag"),
  modelRow("softmax_type", "softmax-type"),
  modelRow("activation_func_clamp_value", "activation-func-clamp-value"),
  modelRow("mtp_num_layers", "mtp-num-layers"),
  modelRow("window_attn_skip_freq", "window-attn-skip-freq"),
  modelRow("multi_latent_attention", "multi-latent-attention", "flag"),
  modelRow("q_lora_rank", "q-lora-rank"),
  modelRow("kv_lora_rank", "kv-lora-rank"),
  modelRow("qk_head_dim", "qk-head-dim"),
  modelRow("qk_pos_emb_head_dim", "qk-pos-emb-head-dim"),
  modelRow("v_head_dim", "v-head-dim"),
  modelRow("moe_ffn_hidden_size", "moe-ffn-hidden-size"),
  modelRow("moe_shared_expert_intermediate_size", "moe-shared-expert-intermediate-size"),
  modelRow("moe_shared_expert_gate", "moe-shared-expert-gate", "flag"),
  modelRow("moe_router_enable_expert_bias", "moe-router-enable-expert-bias", "flag"),
  modelRow("pipeline_model_parallel_layout", "pipeline-model-parallel-layout"),
  modelRow("cp_comm_type", "cp-comm-type"),
  modelRow("expert_tensor_parallel_size", "expert-tensor-parallel-size"),
  modelRow("moe_token_dispatcher_type", "moe-token-dispatcher-type"),
  modelRow("moe_enable_deepep", "moe-enable-deepep", "flag"),
  modelRow("moe_expert_capacity_factor", "moe-expert-capacity-factor"),
  modelRow("moe_pad_expert_input_to_capacity", "moe-pad-expert-input-to-capacity", "flag"),
  modelRow("moe_router_bias_update_rate", "moe-router-bias-update-rate"),
  modelRow("moe_token_drop_policy", "moe-token-drop-policy"),
  modelRow("cuda_graph_impl", "cuda-graph-impl"),
  modelRow("cuda_graph_scope", "cuda-graph-scope"),
  modelRow(
    "scatter_gather_tensors_in_pipeline",
    "no-scatter-gather-tensors-in-pipeline",
    "inverse",
  ),
  modelRow("recompute_granularity", "recompute-granularity"),
  modelRow("recompute_modules", "recompute-modules"),
  modelRow("recompute_method", "recompute-method"),
  modelRow("recompute_num_layers", "recompute-num-layers"),
  modelRow("attention_backend", "attention-backend"),
  modelRow("seq_length", "seq-length"),
  { path: "train.train_iters", option: "train-iters" },
  { path: "train.global_batch_size", option: "global-batch-size" },
  { path: "train.micro_batch_size", option: "micro-batch-size" },
  { path: "train.eval_interval", option: "eval-interval" },
  { path: "train.eval_iters", option: "eval-iters" },
  { path: "optimizer.optimizer", option: "optimizer" },
  { path: "optimizer.lr", option: "lr" },
  { path: "optimizer.min_lr", option: "min-lr" },
  { path: "optimizer.weight_decay", option: "weight-decay" },
  { path: "optimizer.adam_beta1", option: "adam-beta1" },
  { path: "optimizer.adam_beta2", option: "adam-beta2" },
  { path: "optimizer.adam_eps", option: "adam-eps" },
  { path: "optimizer.clip_grad", option: "clip-grad" },
  {
    path: "optimizer.use_precision_aware_optimizer",
    option: "use-precision-aware-optimizer",
    kind: "flag",
  },
  { path: "optimizer.exp_avg_dtype", option: "exp-avg-dtype" },
  { path: "optimizer.exp_avg_sq_dtype", option: "exp-avg-sq-dtype" },
  { path: "optimizer.optimizer_cpu_offload", option: "optimizer-cpu-offload", kind: "flag" },
  { path: "scheduler.lr_decay_style", option: "lr-decay-style" },
  { path: "scheduler.lr_warmup_iters", option: "lr-warmup-iters" },
  { path: "scheduler.lr_decay_iters", option: "lr-decay-iters" },
  { path: "scheduler.lr_wsd_decay_iters", option: "lr-wsd-decay-iters" },
  { path: "scheduler.lr_wsd_decay_style", option: "lr-wsd-decay-style" },
  { path: "ddp.overlap_grad_reduce", option: "overlap-grad-reduce", kind: "flag" },
  { path: "ddp.use_distributed_optimizer", option: "use-distributed-optimizer", kind: "flag" },
  { path: "ddp.use_megatron_fsdp", option: "use-megatron-fsdp", kind: "flag" },
  { path: "ddp.data_parallel_sharding_strategy", option: "data-parallel-sharding-strategy" },
  { path: "ddp.grad_reduce_in_fp32", option: "accumulate-allreduce-grads-in-fp32", kind: "flag" },
  { path: "comm_overlap.tp_comm_overlap", option: "tp-comm-overlap", kind: "flag" },
  {
    path: "comm_overlap.overlap_p2p_comm",
    option: "no-overlap-p2p-communication",
    kind: "inverse",
  },
  {
    path: "comm_overlap.overlap_moe_expert_parallel_comm",
    option: "overlap-moe-expert-parallel-comm",
    kind: "flag",
  },
  { path: "dist.use_tp_pp_dp_mapping", option: "use-tp-pp-dp-mapping", kind: "flag" },
  { path: "checkpoint.save", option: "save" },
  { path: "checkpoint.save_interval", option: "save-interval" },
  { path: "rng.seed", option: "seed" },
];

/** Arguments whose form differs. */
const handled = new Set([
  "group-query-attention",
  "swiglu",
  "squared-relu",
  "bf16",
  "fp16",
  "fp8-format",
  "moe-layer-freq",
  "window-size",
]);

const functions: Readonly<Record<string, string>> = {
  swiglu: "torch.nn.functional.silu",
  "squared-relu": "megatron.core.activations.squared_relu",
  gelu: "torch.nn.functional.gelu",
};
const recipes: Readonly<Record<string, readonly string[]>> = {
  bf16_mixed: ["--bf16"],
  fp16_mixed: ["--fp16"],
  bf16_with_fp8_delayed_scaling_mixed: ["--bf16", "--fp8-format", "hybrid"],
  fp16_with_fp8_delayed_scaling_mixed: ["--fp16", "--fp8-format", "hybrid"],
};

/** The configuration, for `formatYaml`, that makes Megatron-Bridge do what a run says. */
export function toMegatronBridge(run: ResolvedRun): MegatronTree {
  const { config, settings, unsupported } = toTree(run, rows, handled, "Megatron-Bridge");
  const tree = { ...config };
  const activation = ["swiglu", "squared-relu"].find((name) => settings[name] === true) ?? "gelu";
  put(tree, "model.gated_linear_unit", activation === "swiglu");
  put(tree, "model.activation_func", { _target_: functions[activation], _call_: false });
  const words = ["bf16", "fp16"].filter((name) => settings[name] === true).map((n) => `--${n}`);
  if (settings["fp8-format"] !== undefined) words.push("--fp8-format", "hybrid");
  const recipe = Object.keys(recipes).find((name) => recipes[name]!.join() === words.join());
  if (recipe !== undefined) put(tree, "mixed_precision", recipe);
  const { experts, layers, window } = run.model;
  if (settings["moe-layer-freq"] !== undefined && experts !== undefined) {
    const { denseLayers, every } = experts;
    const list = Array.from({ length: layers }, (_, i) =>
      i >= denseLayers && (i + 1) % every === 0 ? 1 : 0,
    );
    put(tree, "model.moe_layer_freq", list);
  }
  if (window !== undefined) put(tree, "model.window_size", [window.size - 1, 0]);
  // Unlike Megatron-LM, it can reduce bf16 gradients as they are.
  const { precision, gradientPrecision } = run.plan;
  put(tree, "ddp.grad_reduce_in_fp32", gradientPrecision === "fp32");
  const said = precision === gradientPrecision;
  const rest = unsupported.filter((u) => !(said && u.option === "plan.gradientPrecision"));
  const unsaid = run.plan.matrixPrecision === "fp8" && recipe === undefined;
  const fp32 = { option: "plan.matrixPrecision", value: "fp8", reason: "only with 16-bit weights" };
  return { config: tree, unsupported: unsaid ? [...rest, fp32] : rest };
}

/**
 * Reads a parsed Megatron-Bridge configuration. `cluster` has to be added.
 * @throws RunError for a value of another kind than it takes.
 */
export function fromMegatronBridge(config: unknown): Imported {
  const tree = new SettingTree(config);
  const words = [...activationOf(tree), ...precisionOf(tree)];
  const groups = tree.number("model.num_query_groups");
  const heads = tree.number("model.num_attention_heads");
  if (groups !== undefined && groups !== heads) words.push("--group-query-attention");
  const pattern = tree.value("model.moe_layer_freq");
  if (Array.isArray(pattern)) words.push("--moe-layer-freq", `([${pattern.join(",")}])`);
  else if (pattern !== undefined) words.push("--moe-layer-freq", JSON.stringify(pattern));
  const window = tree.value("model.window_size");
  if (Array.isArray(window)) words.push("--window-size", window.map(Number).join(","));
  else if (window !== undefined) tree.refuse("model.window_size", window, "only [N, 0]");
  const bf16 = words.includes("--bf16") && tree.flag("ddp.grad_reduce_in_fp32") === false;
  const { description, unsupported } = fromTree(tree, rows, words);
  if (!bf16) return { description, unsupported };
  const plan = { ...Object(description["plan"]), gradientPrecision: "bf16" };
  return { description: { ...description, plan }, unsupported };
}

function activationOf(tree: SettingTree): readonly string[] {
  const gated = tree.flag("model.gated_linear_unit") ?? false;
  const target =
    tree.value("model.activation_func._target_") ?? tree.value("model.activation_func");
  tree.value("model.activation_func._call_");
  const name = gated ? (target ?? functions["swiglu"]) : (target ?? functions["gelu"]);
  if (gated && name === functions["swiglu"]) return ["--swiglu"];
  if (!gated && name === functions["squared-relu"]) return ["--squared-relu"];
  if (gated || name !== functions["gelu"]) {
    const known = Object.values(functions).join(", ");
    tree.refuse(
      "model.activation_func",
      name,
      `only ${known}; silu with a gate, the others without`,
    );
  }
  return [];
}

function precisionOf(tree: SettingTree): readonly string[] {
  const recipe = tree.value("mixed_precision");
  if (recipe === undefined) return [];
  const found = entry(recipes, recipe);
  if (found !== undefined) return found;
  tree.refuse("mixed_precision", recipe, `only ${Object.keys(recipes).join(", ")}`);
  return [];
}
