/**
 * NeMo's YAML of its Megatron GPT models (examples/nlp/language_modeling/conf/megatron_gpt_config.yaml of
 * NeMo 1 and 2.0): groups `trainer`, `model` with `model.optim`, and `exp_manager`.
 */
import type { ResolvedRun } from "../resolved.ts";
import { type Imported, entry } from "./interchange.ts";
import { type MegatronTree, type Row, fromTree, put, toTree } from "./megatron-tree.ts";
import { modelRow, modelRows } from "./model-rows.ts";
import { SettingTree } from "./setting-tree.ts";

const rows: readonly Row[] = [
  ...modelRows,
  modelRow("override_vocab_size", "vocab-size"),
  modelRow("rotary_percentage", "rotary-percent"),
  {
    path: "model.normalization",
    option: "normalization",
    values: { LayerNorm: "layernorm", RMSNorm: "rmsnorm" },
  },
  modelRow("bias", "disable-bias-linear", "inverse"),
  modelRow("qkv_bias", "add-qkv-bias", "flag"),
  modelRow("micro_batch_size", "micro-batch-size"),
  modelRow("global_batch_size", "global-batch-size"),
  modelRow("encoder_seq_length", "seq-length"),
  modelRow("activations_checkpoint_granularity", "recompute-granularity"),
  modelRow("activations_checkpoint_method", "recompute-method"),
  modelRow("activations_checkpoint_num_layers", "recompute-num-layers"),
  modelRow("overlap_p2p_comm", "no-overlap-p2p-communication", "inverse"),
  modelRow("ub_tp_comm_overlap", "tp-comm-overlap", "flag"),
  modelRow("seed", "seed"),
  modelRow("optim.lr", "lr"),
  modelRow("optim.weight_decay", "weight-decay"),
  modelRow("optim.eps", "adam-eps"),
  modelRow("optim.overlap_grad_sync", "overlap-grad-reduce", "flag"),
  modelRow("optim.sched.warmup_steps", "lr-warmup-iters"),
  modelRow("optim.sched.min_lr", "min-lr"),
  {
    path: "model.optim.sched.name",
    option: "lr-decay-style",
    values: {
      cosine: "CosineAnnealing",
      linear: "WarmupAnnealing",
      constant: "WarmupHoldPolicy",
      "inverse-square-root": "InverseSquareRootAnnealing",
    },
  },
  { path: "trainer.max_steps", option: "train-iters" },
  { path: "trainer.val_check_interval", option: "eval-interval" },
  { path: "trainer.limit_val_batches", option: "eval-iters" },
  { path: "trainer.gradient_clip_val", option: "clip-grad" },
  { path: "exp_manager.explicit_log_dir", option: "save" },
  {
    path: "exp_manager.checkpoint_callback_params.every_n_train_steps",
    option: "save-interval",
  },
];

const handled = new Set([
  "group-query-attention",
  "swiglu",
  "squared-relu",
  "bf16",
  "fp16",
  "fp8-format",
  "attention-backend",
  "use-distributed-optimizer",
  "accumulate-allreduce-grads-in-fp32",
  "moe-ffn-hidden-size",
]);

const precisions: Readonly<Record<string, readonly string[]>> = {
  "bf16-mixed": ["--bf16"],
  bf16: ["--bf16"],
  "16-mixed": ["--fp16"],
  "16": ["--fp16"],
  "32": [],
  "32-true": [],
};
const activations: Readonly<Record<string, readonly string[]>> = {
  gelu: [],
  "fast-swiglu": ["--swiglu"],
  swiglu: ["--swiglu"],
  "squared-relu": ["--squared-relu"],
};

/** The configuration, for `formatYaml`, that makes NeMo do what a run says. */
export function toNemo(run: ResolvedRun): MegatronTree {
  const { config, settings, unsupported } = toTree(run, rows, handled, "NeMo");
  const tree = { ...config };
  const list = [...unsupported];
  const refuse = (option: string, value: unknown, reason: string): void => {
    list.push({ option, value, reason });
  };
  const { plan, optimizer, cluster } = run;
  const precision = { bf16: "bf16-mixed", fp16: "16-mixed", fp32: 32 }[plan.precision];
  put(tree, "trainer.precision", precision);
  put(tree, "trainer.num_nodes", cluster.hosts);
  put(tree, "trainer.devices", Math.ceil(cluster.devices / cluster.hosts));
  put(tree, "model.mcore_gpt", true);
  const activation = ["swiglu", "squared-relu"].find((name) => settings[name] === true) ?? "gelu";
  put(tree, "model.activation", activation === "swiglu" ? "fast-swiglu" : activation);
  put(tree, "model.use_flash_attention", plan.flashAttention);
  if (plan.matrixPrecision === "fp8") {
    put(tree, "model.fp8", true);
    put(tree, "model.fp8_hybrid", true);
  }
  put(tree, "model.optim.name", plan.zero === 1 ? "distributed_fused_adam" : "fused_adam");
  put(tree, "model.optim.betas", [optimizer.beta1, optimizer.beta2]);
  if (plan.precision === "fp16") put(tree, "model.optim.grad_sync_dtype", plan.gradientPrecision);
  if (optimizer.schedule === "wsd") {
    refuse("optimizer.schedule", "wsd", "only cosine, linear, constant and inverse-sqrt");
  }
  if (run.model.experts !== undefined && run.model.experts.ffn !== run.model.ffn) {
    refuse("model.experts.ffn", run.model.experts.ffn, "experts are as wide as ffn_hidden_size");
  }
  if (run.model.window !== undefined) {
    refuse("model.window", run.model.window, "has no setting in NeMo");
  }
  if (plan.recompute === "experts") {
    refuse("plan.recompute", plan.recompute, "recomputes the attention core or whole layers");
  }
  return { config: tree, unsupported: list };
}

/**
 * Reads a parsed NeMo configuration. `cluster` has to be added, and the vocabulary where the tokenizer's
 * file alone tells it.
 * @throws RunError for a value of another kind than it takes.
 */
export function fromNemo(config: unknown): Imported {
  const tree = new SettingTree(config);
  const words = [
    ...chosen(tree, "model.activation", activations, "gelu"),
    ...chosen(tree, "trainer.precision", precisions, "32"),
  ];
  const groups = tree.number("model.num_query_groups");
  const heads = tree.number("model.num_attention_heads");
  if (groups !== undefined && groups !== heads) words.push("--group-query-attention");
  if (!(tree.flag("model.use_flash_attention") ?? true))
    words.push("--attention-backend", "unfused");
  const hybrid = tree.flag("model.fp8_hybrid") ?? false;
  if (tree.flag("model.fp8") ?? false) {
    if (hybrid) words.push("--fp8-format", "hybrid");
    else tree.refuse("model.fp8", true, "only with fp8_hybrid");
  }
  if (tree.value("model.optim.grad_sync_dtype") === "fp32") {
    words.push("--accumulate-allreduce-grads-in-fp32");
  }
  words.push(...optimizerOf(tree));
  // Said of the launcher, or by what is read already.
  for (const path of ["trainer.num_nodes", "trainer.devices", "model.mcore_gpt"]) tree.value(path);
  return fromTree(tree, rows, words);
}

function chosen(
  tree: SettingTree,
  path: string,
  known: Readonly<Record<string, readonly string[]>>,
  otherwise: string,
): readonly string[] {
  const value = tree.value(path) ?? otherwise;
  const name = typeof value === "number" ? `${value}` : value;
  const found = entry(known, name);
  if (found === undefined) tree.refuse(path, value, `only ${Object.keys(known).join(", ")}`);
  return found ?? [];
}

function optimizerOf(tree: SettingTree): readonly string[] {
  const name = tree.text("model.optim.name") ?? "fused_adam";
  const betas: readonly unknown[] = [tree.value("model.optim.betas") ?? [0.9, 0.999]].flat();
  const [beta1 = 0.9, beta2 = 0.999] = betas;
  const words: string[] = [];
  if (typeof beta1 === "number" && typeof beta2 === "number") {
    words.push("--adam-beta1", `${beta1}`, "--adam-beta2", `${beta2}`);
  } else {
    tree.refuse("model.optim.betas", betas, "must be two numbers");
  }
  if (name === "distributed_fused_adam") return [...words, "--use-distributed-optimizer"];
  if (!["fused_adam", "adamw", "adam"].includes(name)) {
    tree.refuse("model.optim.name", name, "only fused_adam, distributed_fused_adam and adamw");
  }
  return words;
}
