/** A resolved run as nanotron's configuration. */
import { microbatches } from "@trireme/workload";
import type { ResolvedRun } from "../resolved.ts";
import { type Unsupported, present } from "./interchange.ts";
import { decayStyles, dtypes, engines } from "./nanotron.ts";
import { type Reach, unexpressed } from "./unexpressed.ts";

/** A nanotron configuration, for `formatYaml`, and what it cannot say. */
export interface NanotronConfiguration {
  readonly config: Readonly<Record<string, unknown>>;
  readonly unsupported: readonly Unsupported[];
}

type Refuse = (option: string, value: unknown, reason: string) => undefined;

/** Its models are of Llama's form. */
const reach: Reach = {
  form: {
    position: "rotary",
    norm: "rmsnorm",
    activation: "swiglu",
    bias: false,
    tied: false,
  },
  model: [
    "layers",
    "hidden",
    "heads",
    "kvHeads",
    "headDim",
    "ffn",
    "vocab",
    "context",
    "rotaryBase",
    "normEpsilon",
    "tied",
  ],
  plan: [
    "sequence",
    "tp",
    "pp",
    "cp",
    "schedule",
    "sequenceParallel",
    "recompute",
    "precision",
    "gradientPrecision",
    "zero",
    "overlapTensorParallel",
  ],
  reason: "has no setting in nanotron",
};

/** The configuration that makes nanotron do what a run says; tokenizer and data are left to you. */
export function toNanotron(run: ResolvedRun): NanotronConfiguration {
  const unsupported: Unsupported[] = [];
  const refuse: Refuse = (option, value, reason) => {
    unsupported.push({ option, value, reason });
  };
  const { plan, optimizer, steps, seed, checkpoint, evaluate, name } = run;
  const config = {
    general: { project: "trireme", run: name, seed },
    checkpoints: present({
      checkpoint_interval: checkpoint.every,
      checkpoints_path: checkpoint.directory,
    }),
    model: {
      dtype: dtypes[plan.precision],
      make_vocab_size_divisible_by: 1,
      model_config: modelOf(run, refuse),
    },
    optimizer: {
      accumulate_grad_in_fp32: plan.gradientPrecision === "fp32",
      clip_grad: optimizer.clip,
      learning_rate_scheduler: schedulerOf(run, refuse),
      optimizer_factory: {
        name: "adamW",
        adam_beta1: optimizer.beta1,
        adam_beta2: optimizer.beta2,
        adam_eps: optimizer.epsilon,
      },
      weight_decay: optimizer.weightDecay,
      zero_stage: plan.zero === 1 ? 1 : 0,
    },
    parallelism: present({
      dp: plan.dp,
      pp: plan.pp,
      tp: plan.tp,
      context_parallel_size: plan.cp,
      pp_engine: engines[plan.schedule],
      tp_mode: plan.sequenceParallel ? "REDUCE_SCATTER" : "ALL_REDUCE",
      tp_linear_async_communication: plan.overlapTensorParallel,
      recompute_layer: plan.recompute === "full",
    }),
    tokens: present({
      batch_accumulation_per_replica: plan.pipelines === undefined ? microbatches(plan) : undefined,
      micro_batch_size: plan.microbatch,
      sequence_length: plan.sequence,
      train_steps: steps,
      val_check_interval: evaluate.every,
      limit_val_batches: evaluate.batches,
    }),
  };
  refuseValues(run, refuse);
  return { config, unsupported: [...unsupported, ...unexpressed(run, reach)] };
}

function modelOf({ model }: ResolvedRun, refuse: Refuse): unknown {
  if (model.headDim * model.heads !== model.hidden) {
    refuse("model.headDim", model.headDim, `heads are hidden / heads wide`);
  }
  return {
    is_llama_config: true,
    hidden_act: "silu",
    hidden_size: model.hidden,
    intermediate_size: model.ffn,
    max_position_embeddings: model.context,
    num_attention_heads: model.heads,
    num_hidden_layers: model.layers,
    num_key_value_heads: model.kvHeads,
    rms_norm_eps: model.normEpsilon,
    rope_theta: model.rotaryBase,
    tie_word_embeddings: model.tied,
    vocab_size: model.vocab,
  };
}

function schedulerOf({ optimizer, steps }: ResolvedRun, refuse: Refuse): unknown {
  const { schedule, decay, decayShape, warmup } = optimizer;
  const wsd = schedule === "wsd";
  const style = wsd ? decayShape : schedule;
  if (schedule === "inverse-sqrt") {
    refuse("optimizer.schedule", schedule, "only constant, linear, cosine and wsd");
  }
  const flat = schedule === "constant" || schedule === "inverse-sqrt";
  return present({
    learning_rate: optimizer.learningRate,
    lr_warmup_steps: warmup,
    lr_warmup_style: "linear",
    lr_decay_style: flat ? "linear" : decayStyles[style],
    // A decay that starts at the end is none.
    lr_decay_starting_step: flat ? steps : wsd ? steps - decay : undefined,
    lr_decay_steps: flat ? 0 : wsd ? decay : undefined,
    min_decay_lr: optimizer.minimumLearningRate,
  });
}

function refuseValues(run: ResolvedRun, refuse: Refuse): void {
  const { plan, data, checkpoint, guard, sample } = run;
  if (engines[plan.schedule] === undefined) {
    refuse("plan.schedule", plan.schedule, `only ${Object.keys(engines).join(" and ")}`);
  }
  if (plan.recompute !== "none" && plan.recompute !== "full") {
    refuse("plan.recompute", plan.recompute, "recomputes whole layers or none");
  }
  if (plan.zero > 1) refuse("plan.zero", plan.zero, "shares out the optimizer alone: 0 or 1");
  const kept = plan.gradientPrecision === plan.precision || plan.gradientPrecision === "fp32";
  if (!kept) {
    refuse("plan.gradientPrecision", plan.gradientPrecision, `only fp32 or ${plan.precision}`);
  }
  if (data !== undefined) refuse("data", data.path, "is set in data_stages");
  if (checkpoint.interval !== undefined) {
    refuse("checkpoint.interval", checkpoint.interval, "only in steps");
  }
  if (guard !== undefined) refuse("guard", JSON.stringify(guard), "spikes are not gone back from");
  if (sample !== undefined) refuse("sample", sample.prompt, "text is generated by another program");
}
