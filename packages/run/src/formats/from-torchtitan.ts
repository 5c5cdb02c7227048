/**
 * torchtitan's TOML as a run description. What the file leaves out has torchtitan's default
 * (torchtitan/config/job_config.py of 2025, the last year in which it read TOML).
 */
import { model } from "@trireme/workload";
import { RunError } from "../problem.ts";
import { type Imported, entry, present } from "./interchange.ts";
import { SettingTree } from "./setting-tree.ts";
import { flavors, pipelineSchedules, stageLayersOf } from "./torchtitan.ts";

/**
 * Reads a parsed torchtitan configuration (`parseToml`). `cluster` has to be added, and `model` where
 * its flavor is no preset.
 * @param options.devices Ranks of the launcher, from which torchtitan takes a shard degree of -1 and
 *   a global batch of -1.
 * @throws RunError for a value of another kind than torchtitan takes.
 */
export function fromTorchtitan(
  config: unknown,
  options: { readonly devices?: number } = {},
): Imported {
  const settings = new SettingTree(config);
  const preset = presetOf(settings);
  const description = present({
    model: preset,
    plan: planOf(settings, preset, options.devices),
    optimizer: optimizerOf(settings),
    steps: stepsOf(settings),
    seed: settings.number("training.seed") ?? settings.number("debug.seed"),
    checkpoint: checkpointOf(settings),
  });
  return { description: description ?? {}, unsupported: settings.unsupported() };
}

function stepsOf(settings: SettingTree): number {
  return settings.number("training.steps") ?? 10_000;
}

function presetOf(settings: SettingTree): string | undefined {
  const name = settings.text("model.name") ?? "llama3";
  const flavor = settings.text("model.flavor") ?? "debugmodel";
  const found = flavors[`${name} ${flavor}`];
  const known = Object.keys(flavors).join(", ");
  return (
    found ?? settings.refuse("model.flavor", `${name} ${flavor}`, `only ${known}; state the model`)
  );
}

function planOf(settings: SettingTree, preset: string | undefined, devices?: number): unknown {
  const degree = (axis: string): number => settings.number(`parallelism.${axis}_degree`) ?? 1;
  const tp = degree("tensor_parallel");
  const pp = degree("pipeline_parallel");
  const cp = degree("context_parallel");
  const replicas = degree("data_parallel_replicate");
  const rest = devices === undefined ? undefined : devices / (tp * pp * cp * replicas);
  const stated = settings.number("parallelism.data_parallel_shard_degree") ?? -1;
  const shards = stated === -1 ? rest : stated;
  const dp = shards === undefined ? undefined : replicas * shards;
  const compiled = settings.flag("training.compile") ?? settings.flag("compile.enable") ?? false;
  const layers = preset === undefined ? undefined : model(preset).layers;
  return present({
    tp,
    pp,
    cp,
    dp,
    ...batchOf(settings, pp, dp),
    sequence: settings.number("training.seq_len") ?? 2048,
    contextExchange: rotationOf(settings, cp),
    ep: settings.number("parallelism.expert_parallel_degree"),
    etp: settings.number("parallelism.expert_tensor_parallel_degree"),
    groupedKernel: preset !== undefined && model(preset).experts !== undefined,
    ...stagesOf(settings, pp, layers),
    // Its tensor-parallel plans always split norms and residuals by sequence.
    sequenceParallel: tp > 1,
    recompute: recomputeOf(settings),
    precision: precisionOf(settings),
    matrixPrecision: matrixPrecisionOf(settings),
    gradientPrecision: reductionOf(settings),
    zero: zeroOf(settings, replicas, shards, pp),
    vocabParallelLoss: !(settings.flag("parallelism.disable_loss_parallel") ?? false),
    fusedNorm: compiled,
    fusedElementwise: compiled,
    overlapDataParallel: true,
    overlapTensorParallel: settings.flag("parallelism.enable_async_tensor_parallel") ?? false,
  });
}

function rotationOf(settings: SettingTree, cp: number): string | undefined {
  const path = "parallelism.context_parallel_rotate_method";
  const method = settings.text(path);
  // Without context parallelism the default has no meaning, and a stated value is kept.
  if (method === undefined) return cp > 1 ? "all-gather" : undefined;
  if (method === "alltoall") return "ring";
  return method === "allgather"
    ? "all-gather"
    : settings.refuse(path, method, "only allgather and alltoall");
}

/** A pipeline splits the local batch into microbatches; without one, the local batch is one. */
function batchOf(settings: SettingTree, pp: number, dp: number | undefined): object {
  const local = settings.number("training.local_batch_size") ?? 8;
  const stated = settings.number("training.global_batch_size") ?? -1;
  const all = dp === undefined ? undefined : local * dp;
  const globalBatch = stated === -1 ? all : stated;
  const part = settings.number("parallelism.pipeline_parallel_microbatch_size") ?? 1;
  if (pp > 1 && globalBatch !== undefined && all !== undefined && globalBatch !== all) {
    const reason = `a step fills and drains the pipeline once, with all ${globalBatch} samples`;
    settings.refuse("training.local_batch_size", local, reason);
  }
  return { microbatch: pp > 1 ? part : local, globalBatch };
}

function stagesOf(settings: SettingTree, pp: number, layers: number | undefined): object {
  const name = settings.text("parallelism.pipeline_parallel_schedule") ?? "1F1B";
  const perStage = settings.number("parallelism.pipeline_parallel_layers_per_stage");
  const embedding = settings.number("parallelism.pipeline_parallel_first_stage_less_layers") ?? 1;
  const output = settings.number("parallelism.pipeline_parallel_last_stage_less_layers") ?? 1;
  if (pp === 1) return {};
  const schedule = entry(pipelineSchedules, name);
  if (schedule === undefined) {
    const reason = `only ${Object.keys(pipelineSchedules).join(", ")}`;
    settings.refuse("parallelism.pipeline_parallel_schedule", name, reason);
  }
  const looped = schedule === "interleaved";
  if (layers === undefined) {
    const reason = "stages need the model's layers; state plan.vpp and plan.stageLayers";
    settings.refuse("parallelism.pipeline_parallel_layers_per_stage", perStage, reason);
    return { schedule };
  }
  if (perStage !== undefined && !(Number.isSafeInteger(perStage) && perStage >= 1)) {
    const path = ["parallelism", "pipeline_parallel_layers_per_stage"];
    throw new RunError([{ path, value: perStage, rule: "must be an integer of at least 1" }]);
  }
  const slots = layers + embedding + output;
  const stages = perStage === undefined ? pp * (looped ? 2 : 1) : Math.ceil(slots / perStage);
  if (!looped && stages !== pp) {
    const reason = `makes ${stages} stages, and ${name} has one on each of ${pp} ranks`;
    settings.refuse("parallelism.pipeline_parallel_layers_per_stage", perStage, reason);
    return { schedule };
  }
  return {
    schedule,
    vpp: looped ? stages / pp : undefined,
    stageLayers: stageLayersOf(layers, stages, embedding, output),
  };
}

function recomputeOf(settings: SettingTree): string | undefined {
  const mode = settings.text("activation_checkpoint.mode") ?? "selective";
  const stated = settings.value("activation_checkpoint.selective_ac_option") ?? "2";
  const option = typeof stated === "number" ? `${stated}` : stated;
  if (mode === "none" || mode === "full") return mode;
  if (mode === "selective" && option === "op") return "operators";
  if (mode === "selective" && option === "1") return "full";
  const reason = "only none, full, selective by op and selective by every layer";
  return settings.refuse("activation_checkpoint.mode", { mode, option }, reason);
}

function precisionOf(settings: SettingTree): string | undefined {
  const path = "training.mixed_precision_param";
  const precision = settings.text(path) ?? "bfloat16";
  if (precision === "bfloat16") return "bf16";
  return precision === "float32"
    ? "fp32"
    : settings.refuse(path, precision, "only bfloat16 and float32");
}

function reductionOf(settings: SettingTree): string | undefined {
  const path = "training.mixed_precision_reduce";
  const precision = settings.text(path) ?? "float32";
  return precision === "float32" ? "fp32" : settings.refuse(path, precision, "only float32");
}

/** The converter of float8 has had two names. */
function matrixPrecisionOf(settings: SettingTree): string | undefined {
  const converters: readonly unknown[] = [settings.value("model.converters") ?? []].flat();
  const others = converters.filter((c) => c !== "float8" && c !== "quantize.linear.float8");
  for (const other of others) settings.refuse("model.converters", other, "only float8");
  return converters.length > others.length ? "fp8" : undefined;
}

/** By default weights are let go of after forward only where no pipeline needs them again at once. */
function zeroOf(
  settings: SettingTree,
  replicas: number,
  shards: number | undefined,
  pp: number,
): number {
  const policy = settings.text("parallelism.fsdp_reshard_after_forward") ?? "default";
  const keeps = policy === "never" || (policy === "default" && pp > 1);
  if (shards === 1) return 0;
  if (replicas > 1) {
    const reason = "a run shards over all replicas, not in groups";
    settings.refuse("parallelism.data_parallel_replicate_degree", replicas, reason);
  }
  return keeps ? 2 : 3;
}

function optimizerOf(settings: SettingTree): unknown {
  const kind = settings.text("optimizer.name") ?? "AdamW";
  if (kind !== "AdamW") settings.refuse("optimizer.name", kind, "only AdamW");
  const learningRate = settings.number("optimizer.lr") ?? 8e-4;
  const steps = stepsOf(settings);
  const warmup = settings.number("lr_scheduler.warmup_steps") ?? 200;
  const ratio = settings.number("lr_scheduler.decay_ratio");
  const shape = settings.text("lr_scheduler.decay_type") ?? "linear";
  const least =
    settings.number("lr_scheduler.min_lr_factor") ?? settings.number("lr_scheduler.lr_min") ?? 0;
  const plain = ratio === undefined && (shape === "linear" || shape === "cosine");
  const clip = settings.number("training.max_norm") ?? 1;
  return present({
    learningRate,
    minimumLearningRate: learningRate * least,
    warmup,
    schedule: least === 1 ? "constant" : plain ? shape : "wsd",
    ...(least === 1 || plain ? {} : { decay: decaySteps(steps, warmup, ratio), decayShape: shape }),
    beta1: settings.number("optimizer.beta1") ?? 0.9,
    beta2: settings.number("optimizer.beta2") ?? 0.95,
    epsilon: settings.number("optimizer.eps") ?? 1e-8,
    weightDecay: settings.number("optimizer.weight_decay") ?? 0.1,
    clip: clip === Infinity ? 0 : clip,
  });
}

/** At most the steps that warm-up leaves. */
function decaySteps(steps: number, warmup: number, ratio: number | undefined): number {
  const rest = Math.max(1, steps - warmup);
  return ratio === undefined ? rest : Math.min(rest, Math.max(1, Math.round(steps * ratio)));
}

function checkpointOf(settings: SettingTree): unknown {
  const enabled =
    settings.flag("checkpoint.enable") ?? settings.flag("checkpoint.enable_checkpoint") ?? false;
  const interval = settings.number("checkpoint.interval") ?? 500;
  const keep = settings.number("checkpoint.keep_latest_k") ?? 10;
  const directory = settings.text("checkpoint.folder") ?? "checkpoint";
  if (!enabled) return undefined;
  if (keep === 0)
    settings.refuse("checkpoint.keep_latest_k", keep, "a run keeps a number of saves");
  return present({ every: interval, keep: keep || undefined, directory });
}
