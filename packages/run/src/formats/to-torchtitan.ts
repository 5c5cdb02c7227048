/** A resolved run as torchtitan's configuration. */
import { type Plan, model as presetModel, stages } from "@trireme/workload";
import { fingerprint } from "../fingerprint.ts";
import type { ResolvedRun } from "../resolved.ts";
import { type Unsupported, present } from "./interchange.ts";
import { type Reach, unexpressed } from "./unexpressed.ts";
import { flavors, pipelineSchedules, stageWeights } from "./torchtitan.ts";

/** A torchtitan configuration, for `formatToml`, and what it cannot say. */
export interface TorchtitanConfiguration {
  readonly config: Readonly<Record<string, unknown>>;
  readonly unsupported: readonly Unsupported[];
}

type Refuse = (option: string, value: unknown, reason: string) => undefined;

/** The configuration that makes torchtitan do what a run says; its data are left to you. */
export function toTorchtitan(run: ResolvedRun): TorchtitanConfiguration {
  const unsupported: Unsupported[] = [];
  const refuse: Refuse = (option, value, reason) => {
    unsupported.push({ option, value, reason });
  };
  const { plan, optimizer, steps, seed } = run;
  const compile = plan.fusedNorm && plan.fusedElementwise;
  const config = {
    model: modelOf(run, refuse),
    training: {
      local_batch_size: plan.pp > 1 ? plan.globalBatch / plan.dp : plan.microbatch,
      global_batch_size: plan.globalBatch,
      seq_len: plan.sequence,
      // Nothing is clipped by a norm that no gradient reaches.
      max_norm: optimizer.clip === 0 ? Infinity : optimizer.clip,
      steps,
      mixed_precision_param: precisionOf(run, refuse),
      mixed_precision_reduce: "float32",
      compile,
      seed,
    },
    parallelism: { ...degreesOf(run, refuse), ...stagesOf(run, refuse) },
    activation_checkpoint: recomputeOf(run, refuse),
    optimizer: {
      name: "AdamW",
      lr: optimizer.learningRate,
      beta1: optimizer.beta1,
      beta2: optimizer.beta2,
      eps: optimizer.epsilon,
      weight_decay: optimizer.weightDecay,
    },
    lr_scheduler: schedulerOf(run, refuse),
    checkpoint: checkpointOf(run, refuse),
  };
  refuseRest(run, refuse);
  return { config, unsupported: [...unsupported, ...unexpressed(run, reach)] };
}

const reach: Reach = {
  form: {},
  reason: "has no setting in torchtitan",
  // A flavor says all of a model, or the model is listed whole.
  model: Object.keys(presetModel("gpt2")).concat(["window", "latent", "experts", "adapter"]),
  plan: [
    "sequence",
    "tp",
    "pp",
    "cp",
    "ep",
    "etp",
    "vpp",
    "schedule",
    "stageLayers",
    "contextExchange",
    "groupedKernel",
    "sequenceParallel",
    "scatterGather",
    "recompute",
    "precision",
    "matrixPrecision",
    "gradientPrecision",
    "zero",
    "flashAttention",
    "flashVersion",
    "vocabParallelLoss",
    "fusedSoftmax",
    "fusedNorm",
    "fusedElementwise",
    "dropout",
    "overlapDataParallel",
    "overlapGradientProducts",
    "overlapTensorParallel",
    "overlapPointToPoint",
  ],
};

function modelOf({ model, plan }: ResolvedRun, refuse: Refuse): unknown {
  // A preset with changes keeps its name.
  const flavor = Object.keys(flavors).find(
    (key) => fingerprint(presetModel(flavors[key]!)) === fingerprint(model),
  );
  const converters = plan.matrixPrecision === "fp8" ? ["float8"] : undefined;
  if (plan.matrixPrecision !== undefined && plan.matrixPrecision !== "fp8") {
    refuse("plan.matrixPrecision", plan.matrixPrecision, "only fp8");
  }
  if (flavor === undefined) {
    refuse("model", model.name, `only ${Object.values(flavors).join(", ")}; add a flavor in code`);
    return present({ converters });
  }
  const [name, size] = flavor.split(" ");
  return present({ name, flavor: size, converters });
}

function precisionOf({ plan }: ResolvedRun, refuse: Refuse): string | undefined {
  if (plan.gradientPrecision !== "fp32") {
    refuse("plan.gradientPrecision", plan.gradientPrecision, "gradients are reduced in float32");
  }
  if (plan.precision === "bf16") return "bfloat16";
  return plan.precision === "fp32"
    ? "float32"
    : refuse("plan.precision", plan.precision, "only bf16 and fp32");
}

function degreesOf({ plan }: ResolvedRun, refuse: Refuse): object {
  const { zero, dp, tp } = plan;
  const sharded = zero > 0 && dp > 1;
  if (zero > 0 && dp === 1) refuse("plan.zero", zero, "one replica shares nothing out");
  if (zero === 1 && dp > 1) refuse("plan.zero", zero, "gradients are shared out too, as by zero 2");
  if (plan.sequenceParallel !== tp > 1) {
    const reason = "tensor parallelism always comes with sequence parallelism";
    refuse("plan.sequenceParallel", plan.sequenceParallel, reason);
  }
  return {
    data_parallel_replicate_degree: sharded ? 1 : dp,
    data_parallel_shard_degree: sharded ? dp : 1,
    fsdp_reshard_after_forward: zero === 3 ? "always" : "never",
    tensor_parallel_degree: tp,
    context_parallel_degree: plan.cp,
    context_parallel_rotate_method: rotationOf(plan, refuse),
    expert_parallel_degree: plan.ep,
    expert_tensor_parallel_degree: plan.etp,
    disable_loss_parallel: !plan.vocabParallelLoss,
    enable_async_tensor_parallel: plan.overlapTensorParallel,
  };
}

/** Keys and values go round by all-to-alls, or are gathered. */
function rotationOf(plan: Plan, refuse: Refuse): string {
  if (plan.contextExchange === "all-to-all") {
    refuse("plan.contextExchange", "all-to-all", "heads are not split over context ranks");
  }
  return plan.contextExchange === "ring" ? "alltoall" : "allgather";
}

function stagesOf({ plan, model }: ResolvedRun, refuse: Refuse): object {
  const named = Object.keys(pipelineSchedules).find(
    (name) => pipelineSchedules[name] === plan.schedule,
  );
  if (named === undefined) {
    const reason = `only ${Object.keys(pipelineSchedules).join(", ")}`;
    refuse("plan.schedule", plan.schedule, reason);
  }
  if (plan.pipelines !== undefined) return { pipeline_parallel_degree: plan.pp };
  if (plan.pp === 1) {
    if (named !== undefined && plan.schedule !== "1f1b") {
      refuse("plan.schedule", plan.schedule, "one stage has no schedule");
    }
    if (plan.stageLayers !== undefined) {
      refuse("plan.stageLayers", plan.stageLayers, "one stage holds all layers");
    }
    return { pipeline_parallel_degree: 1 };
  }
  const count = plan.pp * plan.vpp;
  const stated = stages(model, plan).map((stage) => stage.layers);
  const weights = stageWeights(stated);
  if (weights === undefined) {
    refuse("plan.stageLayers", stated, "write module_fqns_per_model_part by hand");
  }
  const { embedding, output } = weights ?? { embedding: 1, output: 1 };
  const slots = model.layers + embedding + output;
  const perStage = Math.ceil(slots / count);
  // Left out, there is one stage a rank, or two where they are interleaved.
  const implied = plan.vpp === (plan.schedule === "interleaved" ? 2 : 1);
  if (!implied && Math.ceil(slots / perStage) !== count) {
    const made = Math.ceil(slots / perStage);
    refuse("plan.vpp", plan.vpp, `${perStage} layers a stage make ${made} stages, not ${count}`);
  }
  return {
    pipeline_parallel_degree: plan.pp,
    pipeline_parallel_schedule: named,
    pipeline_parallel_microbatch_size: plan.microbatch,
    ...(implied ? {} : { pipeline_parallel_layers_per_stage: perStage }),
    pipeline_parallel_first_stage_less_layers: embedding,
    pipeline_parallel_last_stage_less_layers: output,
  };
}

function recomputeOf({ plan }: ResolvedRun, refuse: Refuse): unknown {
  switch (plan.recompute) {
    case "none":
    case "full":
      return { mode: plan.recompute };
    case "operators":
      return { mode: "selective", selective_ac_option: "op" };
    case "selective":
    case "rematerialise":
    case "experts":
      refuse("plan.recompute", plan.recompute, "recomputes by operator or in full");
      return { mode: "none" };
  }
}

function schedulerOf({ optimizer, steps }: ResolvedRun, refuse: Refuse): unknown {
  const { schedule, learningRate, minimumLearningRate, decay, decayShape } = optimizer;
  const common = {
    warmup_steps: optimizer.warmup,
    min_lr_factor: minimumLearningRate / learningRate,
  };
  switch (schedule) {
    case "constant":
      return { ...common, min_lr_factor: 1 };
    case "linear":
    case "cosine":
      return { ...common, decay_type: schedule };
    case "wsd":
      return { ...common, decay_type: decayShape, decay_ratio: decay / steps };
    case "inverse-sqrt":
      refuse("optimizer.schedule", schedule, "only constant, linear, cosine and wsd");
      return { warmup_steps: optimizer.warmup };
  }
}

function checkpointOf({ checkpoint }: ResolvedRun, refuse: Refuse): unknown {
  const { every, interval, keep, directory } = checkpoint;
  if (interval !== undefined) refuse("checkpoint.interval", interval, "only in steps");
  if (every === undefined) return { enable: false };
  return present({ enable: true, interval: every, keep_latest_k: keep, folder: directory });
}

function refuseRest(run: ResolvedRun, refuse: Refuse): void {
  const { plan, data, evaluate, guard, sample } = run;
  if (plan.fusedNorm !== plan.fusedElementwise) {
    refuse(
      "plan.fusedNorm",
      plan.fusedNorm,
      "compile fuses norms and elementwise operations alike",
    );
  }
  if (!plan.flashAttention) refuse("plan.flashAttention", false, "attention is always fused");
  if (!plan.fusedSoftmax) refuse("plan.fusedSoftmax", false, "attention is always fused");
  if (plan.flashVersion !== undefined) {
    refuse("plan.flashVersion", plan.flashVersion, "the installed kernels decide");
  }
  if (!plan.overlapDataParallel && plan.dp > 1) {
    refuse("plan.overlapDataParallel", false, "replicas always reduce behind backward");
  }
  if (!plan.overlapGradientProducts) {
    refuse("plan.overlapGradientProducts", false, "the compiler decides");
  }
  if (plan.overlapPointToPoint) {
    refuse("plan.overlapPointToPoint", true, "the pipeline schedule decides");
  }
  if (plan.groupedKernel !== (run.model.experts !== undefined)) {
    refuse("plan.groupedKernel", plan.groupedKernel, "experts always share one kernel");
  }
  if (plan.scatterGather) refuse("plan.scatterGather", true, "boundaries are sent as they are");
  if (plan.dropout > 0) refuse("plan.dropout", plan.dropout, "its models have no dropout");
  if (data !== undefined) refuse("data", data.path, "is a named dataset: training.dataset");
  if (guard !== undefined) refuse("guard", JSON.stringify(guard), "spikes are not gone back from");
  if (sample !== undefined) refuse("sample", sample.prompt, "text is generated by another program");
  const value = `${evaluate.batches} every ${evaluate.every}`;
  refuse("evaluate", value, "counts batches of one rank: set [validation] by hand");
}
