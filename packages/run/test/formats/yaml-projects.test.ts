/** nanotron, NeMo and Megatron-Bridge: files of the kind that each project publishes, written anew, and round trips. */
import { RunError, defineRun } from "@trireme/run";
import {
  type Imported,
  type Unsupported,
  formatYaml,
  fromMegatronBridge,
  fromNanotron,
  fromNemo,
  parseYaml,
  toMegatronBridge,
  toNanotron,
  toNemo,
} from "@trireme/run/formats";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

const cluster = { host: "dgx-h100", hosts: 2 };
const options = (unsupported: readonly Unsupported[]): readonly string[] =>
  unsupported.map((u) => u.option);

const nanotron = `
checkpoints: {checkpoint_interval: 1000, checkpoints_path: saves, resume_checkpoint_path: null}
data_stages:
  - {name: stable, start_training_step: 1}
general: {project: fineweb, run: smol, seed: 42, step: null}
logging: {log_level: info}
model:
  dtype: bfloat16
  make_vocab_size_divisible_by: 1
  model_config:
    bos_token_id: 1
    hidden_act: silu
    hidden_size: 2048
    initializer_range: 0.02
    intermediate_size: 8192
    is_llama_config: true
    max_position_embeddings: 4096
    num_attention_heads: 32
    num_hidden_layers: 24
    num_key_value_heads: 8
    pretraining_tp: 1
    rms_norm_eps: 1.0e-05
    rope_theta: 10000.0
    tie_word_embeddings: true
    vocab_size: 49152
optimizer:
  accumulate_grad_in_fp32: true
  clip_grad: 1.0
  learning_rate_scheduler:
    learning_rate: 5e-4
    lr_decay_starting_step: 8000
    lr_decay_steps: 2000
    lr_decay_style: 1-sqrt
    lr_warmup_steps: 500
    lr_warmup_style: linear
    min_decay_lr: 0
  optimizer_factory: {adam_beta1: 0.9, adam_beta2: 0.95, adam_eps: 1.0e-08, name: adamW, torch_adam_is_fused: true}
  weight_decay: 0.01
  zero_stage: 1
parallelism:
  dp: 4
  expert_parallel_size: 1
  pp: 2
  pp_engine: 1f1b
  tp: 2
  tp_linear_async_communication: true
  tp_mode: REDUCE_SCATTER
tokens:
  batch_accumulation_per_replica: 8
  limit_test_batches: 0
  limit_val_batches: 10
  micro_batch_size: 4
  sequence_length: 4096
  train_steps: 10000
  val_check_interval: -1
`;

const nemo = `
name: megatron_gpt
trainer: {devices: 8, num_nodes: 2, precision: bf16-mixed, max_steps: 1000, val_check_interval: 100, limit_val_batches: 5, gradient_clip_val: 1.0}
exp_manager: {explicit_log_dir: logs, checkpoint_callback_params: {every_n_train_steps: 200, save_top_k: 3}}
model:
  mcore_gpt: true
  micro_batch_size: 1
  global_batch_size: 128
  tensor_model_parallel_size: 4
  pipeline_model_parallel_size: 2
  virtual_pipeline_model_parallel_size: 4
  encoder_seq_length: 4096
  max_position_embeddings: 4096
  num_layers: 32
  hidden_size: 4096
  ffn_hidden_size: 11008
  num_attention_heads: 32
  init_method_std: 0.01
  hidden_dropout: 0.0
  attention_dropout: 0.0
  normalization: rmsnorm
  layernorm_epsilon: 1e-5
  bias: false
  activation: fast-swiglu
  position_embedding_type: rope
  share_embeddings_and_output_weights: false
  override_vocab_size: 32000
  sequence_parallel: true
  fp8: true
  fp8_hybrid: true
  seed: 7
  optim:
    name: distributed_fused_adam
    lr: 1e-4
    weight_decay: 0.1
    betas: [0.9, 0.95]
    sched: {name: CosineAnnealing, warmup_steps: 50, constant_steps: 0, min_lr: 1e-5}
`;

const bridge = `
model:
  _target_: megatron.bridge.models.deepseek.DeepSeekV2LiteModelProvider
  num_layers: 27
  hidden_size: 2048
  num_attention_heads: 16
  ffn_hidden_size: 10944
  vocab_size: 102400
  make_vocab_size_divisible_by: 1
  gated_linear_unit: true
  activation_func: {_target_: torch.nn.functional.silu, _call_: false}
  normalization: RMSNorm
  layernorm_epsilon: 1e-6
  add_bias_linear: false
  qk_layernorm: true
  position_embedding_type: rope
  rotary_base: 10000
  share_embeddings_and_output_weights: false
  multi_latent_attention: true
  kv_lora_rank: 512
  qk_head_dim: 128
  qk_pos_emb_head_dim: 64
  v_head_dim: 128
  num_moe_experts: 64
  moe_router_topk: 6
  moe_ffn_hidden_size: 1408
  moe_shared_expert_intermediate_size: 2816
  moe_layer_freq: [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
  moe_grouped_gemm: true
  moe_token_dispatcher_type: alltoall
  hidden_dropout: 0.0
  attention_dropout: 0.0
  seq_length: 4096
  max_position_embeddings: 4096
  expert_model_parallel_size: 8
  moe_aux_loss_coeff: 0.001
train: {train_iters: 1000, global_batch_size: 512, micro_batch_size: 1, eval_interval: 100, eval_iters: 2}
optimizer: {optimizer: adam, lr: 3e-4, min_lr: 3e-5, weight_decay: 0.1, adam_beta1: 0.9, adam_beta2: 0.95, adam_eps: 1e-8, clip_grad: 1.0}
scheduler: {lr_decay_style: cosine, lr_warmup_iters: 100}
ddp: {overlap_grad_reduce: true, use_distributed_optimizer: true, grad_reduce_in_fp32: false}
mixed_precision: bf16_mixed
checkpoint: {save: saves, save_interval: 200}
rng: {seed: 5}
`;

describe("nanotron's configuration", () => {
  it("becomes a run, and what has no counterpart is listed", async () => {
    const { description, unsupported } = fromNanotron(await parseYaml(nanotron));
    const run = defineRun({ ...description, cluster });
    expect(run.model).toMatchObject({ layers: 24, kvHeads: 8, activation: "swiglu", tied: true });
    expect(run.plan).toMatchObject({
      tp: 2,
      pp: 2,
      dp: 4,
      globalBatch: 128,
      microbatch: 4,
      zero: 1,
      sequenceParallel: true,
      overlapTensorParallel: true,
    });
    expect(run.optimizer).toMatchObject({
      schedule: "wsd",
      decay: 2000,
      decayShape: "sqrt",
      warmup: 500,
    });
    expect([run.name, run.seed, run.steps, run.checkpoint.every]).toEqual([
      "smol",
      42,
      10_000,
      1000,
    ]);
    expect(options(unsupported)).toEqual([
      "data_stages",
      "logging.log_level",
      "optimizer.optimizer_factory.torch_adam_is_fused",
      "tokens.limit_test_batches",
    ]);
  });

  it.each([
    [{ model: { model_config: { is_llama_config: false } } }, "model.model_config.is_llama_config"],
    [{ model: { model_config: { hidden_act: "mish", hidden_size: 8 } } }, "model.model_config"],
    [{ model: { dtype: "float8" } }, "model.dtype"],
    [{ parallelism: { pp_engine: "zb" } }, "parallelism.pp_engine"],
    [{ parallelism: { tp_mode: "other" } }, "parallelism.tp_mode"],
    [{ optimizer: { zero_stage: 3 } }, "optimizer.zero_stage"],
    [{ optimizer: { optimizer_factory: { name: "sgd" } } }, "optimizer.optimizer_factory.name"],
    [
      { optimizer: { learning_rate_scheduler: { lr_decay_style: "exp" } } },
      "optimizer.learning_rate_scheduler.lr_decay_style",
    ],
    [
      {
        tokens: { train_steps: 100 },
        optimizer: { learning_rate_scheduler: { lr_decay_steps: 7 } },
      },
      "optimizer.learning_rate_scheduler.lr_decay_steps",
    ],
  ])("%j is listed", (config, option) => {
    expect(options(fromNanotron(config).unsupported)).toContain(option);
  });

  it("with text for a number is refused by its path", () => {
    expect(() => fromNanotron({ tokens: { train_steps: "many" } })).toThrow(RunError);
    expect(() => fromNanotron({ tokens: { train_steps: "many" } })).toThrow("tokens.train_steps");
  });
});

describe("NeMo's configuration", () => {
  it("becomes a run, and what has no counterpart is listed", async () => {
    const { description, unsupported } = fromNemo(await parseYaml(nemo));
    const run = defineRun({ ...description, cluster });
    expect(run.model).toMatchObject({
      layers: 32,
      ffn: 11_008,
      activation: "swiglu",
      norm: "rmsnorm",
      vocab: 32_256,
    });
    expect(run.plan).toMatchObject({
      tp: 4,
      pp: 2,
      vpp: 4,
      dp: 2,
      zero: 1,
      precision: "bf16",
      matrixPrecision: "fp8",
      sequenceParallel: true,
    });
    expect(run.optimizer).toMatchObject({
      schedule: "cosine",
      warmup: 50,
      beta2: 0.95,
      minimumLearningRate: 1e-5,
    });
    expect([run.steps, run.seed, run.checkpoint.every]).toEqual([1000, 7, 200]);
    expect(options(unsupported)).toEqual([
      "name",
      "exp_manager.checkpoint_callback_params.save_top_k",
      "model.init_method_std",
      "model.optim.sched.constant_steps",
    ]);
  });

  it.each([
    [{ model: { activation: "reglu" } }, "model.activation"],
    [{ trainer: { precision: "64" } }, "trainer.precision"],
    [{ model: { fp8: true } }, "model.fp8"],
    [{ model: { optim: { name: "sgd" } } }, "model.optim.name"],
    [{ model: { optim: { sched: { name: "OneCycle" } } } }, "model.optim.sched.name"],
    [{ model: { normalization: "layernorm1p" } }, "model.normalization"],
  ])("%j is listed", (config, option) => {
    expect(options(fromNemo(config).unsupported)).toContain(option);
  });
});

describe("Megatron-Bridge's configuration", () => {
  it("becomes a run, and what has no counterpart is listed", async () => {
    const { description, unsupported } = fromMegatronBridge(await parseYaml(bridge));
    const run = defineRun({ ...description, cluster });
    expect(run.model).toMatchObject({
      latent: { queryRank: 0, keyValueRank: 512 },
      experts: { count: 64, active: 6, ffn: 1408, sharedFfn: 2816, denseLayers: 1 },
    });
    expect(run.plan).toMatchObject({
      ep: 8,
      dp: 16,
      zero: 1,
      groupedKernel: true,
      precision: "bf16",
      gradientPrecision: "bf16",
      overlapDataParallel: true,
    });
    expect([run.steps, run.seed]).toEqual([1000, 5]);
    expect(run.router).toEqual({ scoring: "softmax-after", balanceLoss: 0.001 });
    // Megatron's default balances each microbatch by itself.
    expect(options(unsupported)).toEqual([
      "model.moe_router_load_balancing_type",
      "model._target_",
    ]);
  });

  it.each([
    [{ model: { activation_func: "torch.nn.functional.relu" } }, "model.activation_func"],
    [
      { model: { gated_linear_unit: true, activation_func: "torch.nn.functional.gelu" } },
      "model.activation_func",
    ],
    [{ model: { num_layers: { of: 3 } } }, "model.num_layers"],
    [{ model: { window_size: "all" } }, "model.window_size"],
    [{ mixed_precision: "nvfp4_mixed" }, "mixed_precision"],
    [{ model: { cp_comm_type: "a2a+p2p" } }, "model.cp_comm_type"],
  ])("%j is listed", (config, option) => {
    expect(options(fromMegatronBridge(config).unsupported)).toContain(option);
  });
});

describe.each<{
  readonly name: string;
  readonly write: typeof toNemo;
  readonly read: (config: unknown) => Imported;
  readonly plan: Readonly<Record<string, fc.Arbitrary<unknown>>>;
  readonly models: readonly unknown[];
  readonly schedules: readonly string[];
}>([
  {
    name: "nanotron",
    write: toNanotron,
    read: fromNanotron,
    models: ["llama3-8b", "llama2-70b", "llama3.2-1b"],
    schedules: ["constant", "linear", "cosine", "wsd"],
    plan: {
      schedule: fc.constantFrom("1f1b", "gpipe"),
      zero: fc.constantFrom(0, 1),
      recompute: fc.constantFrom("none", "full"),
      cp: fc.constantFrom(1, 2),
      overlapTensorParallel: fc.boolean(),
    },
  },
  {
    name: "NeMo",
    write: toNemo,
    read: fromNemo,
    models: ["llama3-8b", { preset: "gpt2-medium", vocab: 50_304 }, "mixtral-8x7b"],
    schedules: ["constant", "linear", "cosine", "inverse-sqrt"],
    plan: {
      zero: fc.constantFrom(0, 1),
      recompute: fc.constantFrom("none", "selective", "full"),
      cp: fc.constantFrom(1, 2),
      overlapTensorParallel: fc.boolean(),
      overlapDataParallel: fc.boolean(),
      flashAttention: fc.boolean(),
      fusedSoftmax: fc.boolean(),
      dropout: fc.constantFrom(0, 0.1),
    },
  },
  {
    name: "Megatron-Bridge",
    write: toMegatronBridge,
    read: fromMegatronBridge,
    models: [
      "llama3-8b",
      { preset: "gpt2-medium", vocab: 50_304 },
      "mixtral-8x7b",
      "deepseek-v2-lite",
      "qwen2-57b-a14b",
    ],
    schedules: ["constant", "linear", "cosine", "inverse-sqrt", "wsd"],
    plan: {
      zero: fc.constantFrom(0, 1, 2, 3),
      recompute: fc.constantFrom("none", "selective", "full"),
      cp: fc.constantFrom(1, 2),
      contextExchange: fc.constantFrom("ring", "all-gather"),
      dispatch: fc.constantFrom("all-to-all", "unique", "all-gather"),
      groupedKernel: fc.boolean(),
      cudaGraphs: fc.constantFrom("none", "routing", "all"),
      offload: fc.constantFrom("none", "optimizer"),
      gradientPrecision: fc.constantFrom("fp32", "bf16"),
      overlapDataParallel: fc.boolean(),
      overlapExpertParallel: fc.boolean(),
    },
  },
])("$name goes round through its text", ({ write, read, plan, models, schedules }) => {
  it("for every run that it can express", async () => {
    const drawn = fc.record({
      ...plan,
      tp: fc.constantFrom(1, 2, 4),
      pp: fc.constantFrom(1, 2),
      microbatch: fc.constantFrom(1, 2),
    });
    await fc.assert(
      fc.asyncProperty(
        drawn,
        fc.constantFrom(...models),
        fc.constantFrom(...schedules),
        async (o, model, schedule) => {
          const run = defineRun({
            model,
            cluster,
            plan: {
              ...o,
              sequenceParallel: o.tp > 1,
              globalBatch: 64,
            },
            optimizer: { schedule, warmup: 7, learningRate: 2e-4 },
            steps: 1000,
            seed: 3,
            checkpoint: { every: 100, directory: "saves" },
          });
          const { config, unsupported } = write(run);
          expect(options(unsupported)).toEqual([]);
          const back = read(await parseYaml(await formatYaml(config)));
          expect(back.unsupported).toEqual([]);
          const again = defineRun({ ...back.description, cluster });
          expect(again.plan).toEqual(run.plan);
          const { name: _, source: __, ...shape } = run.model;
          expect(again.model).toMatchObject(shape);
          const { decay, decayShape, ...optimizer } = run.optimizer;
          expect(again.optimizer).toMatchObject(
            schedule === "wsd" ? { ...optimizer, decay, decayShape } : optimizer,
          );
          expect([again.steps, again.seed, again.checkpoint.every]).toEqual([1000, 3, 100]);
        },
      ),
      { numRuns: 60 },
    );
  });
});
