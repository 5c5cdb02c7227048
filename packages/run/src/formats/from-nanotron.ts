/** nanotron's YAML as a run description. What the file leaves out has nanotron's default. */
import { modelFromHuggingFace } from "@trireme/workload";
import { TriremeError } from "@trireme/core";
import { isGroup } from "../problem.ts";
import { type Imported, present } from "./interchange.ts";
import { decayStyles, dtypes, engines, nameOf } from "./nanotron.ts";
import { SettingTree } from "./setting-tree.ts";

/**
 * Reads a parsed nanotron configuration (`parseYaml`). `cluster` has to be added.
 * @throws RunError for a value of another kind than nanotron takes.
 */
export function fromNanotron(config: unknown): Imported {
  const settings = new SettingTree(config);
  const dp = settings.number("parallelism.dp");
  const micro = settings.number("tokens.micro_batch_size");
  const accumulation = settings.number("tokens.batch_accumulation_per_replica") ?? 1;
  const precision = precisionOf(settings);
  const zero = settings.number("optimizer.zero_stage") ?? 0;
  const description = present({
    name: settings.text("general.run"),
    model: modelOf(settings),
    plan: present({
      dp,
      pp: settings.number("parallelism.pp"),
      tp: settings.number("parallelism.tp"),
      cp: settings.number("parallelism.context_parallel_size"),
      ep: settings.number("parallelism.expert_parallel_size"),
      schedule: scheduleOf(settings),
      sequenceParallel: modeOf(settings),
      overlapTensorParallel: settings.flag("parallelism.tp_linear_async_communication"),
      recompute: (settings.flag("parallelism.recompute_layer") ?? false) ? "full" : "none",
      microbatch: micro,
      globalBatch: dp === undefined || micro === undefined ? undefined : dp * micro * accumulation,
      sequence: settings.number("tokens.sequence_length"),
      precision,
      gradientPrecision:
        (settings.flag("optimizer.accumulate_grad_in_fp32") ?? true) ? "fp32" : precision,
      zero: zero <= 1 ? zero : settings.refuse("optimizer.zero_stage", zero, "only 0 and 1"),
    }),
    optimizer: optimizerOf(settings),
    steps: settings.number("tokens.train_steps"),
    seed: settings.number("general.seed"),
    checkpoint: present({
      every: settings.number("checkpoints.checkpoint_interval"),
      directory: settings.text("checkpoints.checkpoints_path"),
    }),
    evaluate: present({
      every: positive(settings.number("tokens.val_check_interval")),
      batches: positive(settings.number("tokens.limit_val_batches")),
    }),
  });
  // The name of a project has no part in a run.
  settings.value("general.project");
  return { description: description ?? {}, unsupported: settings.unsupported() };
}

/** nanotron writes -1, or 0, for never. */
function positive(n: number | undefined): number | undefined {
  return n !== undefined && n > 0 ? n : undefined;
}

/** Its model section is that of a Llama's config.json. */
function modelOf(settings: SettingTree): unknown {
  const path = "model.model_config";
  const own = settings.value(path);
  const multiple = settings.number("model.make_vocab_size_divisible_by") ?? 1;
  if (!isGroup(own)) return undefined;
  const llama = settings.flag(`${path}.is_llama_config`) ?? true;
  const { is_llama_config: ___, ...fields } = own;
  if (!llama) return settings.refuse(`${path}.is_llama_config`, llama, "only Llama's form");
  try {
    const {
      source: _,
      name: __,
      ...model
    } = modelFromHuggingFace({
      ...fields,
      model_type: "llama",
    });
    const rows = multiple * (settings.number("parallelism.tp") ?? 1);
    // With 1 the vocabulary stays as it is.
    const vocab = multiple === 1 ? model.vocab : Math.ceil(model.vocab / rows) * rows;
    return { ...model, vocab };
  } catch (error) {
    if (!(error instanceof TriremeError)) throw error;
    return settings.refuse(path, own, error.message);
  }
}

function precisionOf(settings: SettingTree): string | undefined {
  const dtype = settings.text("model.dtype") ?? "bfloat16";
  const known = Object.values(dtypes).join(", ");
  return nameOf(dtypes, dtype) ?? settings.refuse("model.dtype", dtype, `only ${known}`);
}

function scheduleOf(settings: SettingTree): string | undefined {
  const path = "parallelism.pp_engine";
  const engine = settings.text(path);
  if (engine === undefined) return undefined;
  const known = Object.values(engines).join(" and ");
  return nameOf(engines, engine) ?? settings.refuse(path, engine, `only ${known}`);
}

function modeOf(settings: SettingTree): boolean | undefined {
  const path = "parallelism.tp_mode";
  const mode = settings.text(path)?.toUpperCase() ?? "ALL_REDUCE";
  if (mode === "REDUCE_SCATTER") return true;
  return mode === "ALL_REDUCE"
    ? false
    : settings.refuse(path, mode, "only ALL_REDUCE and REDUCE_SCATTER");
}

function optimizerOf(settings: SettingTree): unknown {
  const factory = "optimizer.optimizer_factory";
  const kind = settings.text(`${factory}.name`) ?? "adamW";
  if (kind !== "adamW") settings.refuse(`${factory}.name`, kind, "only adamW");
  return present({
    ...scheduleOfRate(settings),
    beta1: settings.number(`${factory}.adam_beta1`),
    beta2: settings.number(`${factory}.adam_beta2`),
    epsilon: settings.number(`${factory}.adam_eps`),
    weightDecay: settings.number("optimizer.weight_decay"),
    clip: settings.number("optimizer.clip_grad"),
  });
}

function scheduleOfRate(settings: SettingTree): object {
  const path = "optimizer.learning_rate_scheduler";
  const steps = settings.number("tokens.train_steps");
  const warmup = settings.number(`${path}.lr_warmup_steps`) ?? 0;
  const starts = settings.number(`${path}.lr_decay_starting_step`);
  const lasts = settings.number(`${path}.lr_decay_steps`);
  const style = settings.text(`${path}.lr_decay_style`) ?? "linear";
  const shape = nameOf(decayStyles, style);
  if (shape === undefined) {
    settings.refuse(
      `${path}.lr_decay_style`,
      style,
      `only ${Object.values(decayStyles).join(", ")}`,
    );
  }
  const warm = settings.text(`${path}.lr_warmup_style`) ?? "linear";
  if (warm !== "linear") settings.refuse(`${path}.lr_warmup_style`, warm, "only linear");
  const begin = starts ?? warmup;
  const end = lasts === undefined ? steps : begin + lasts;
  if (steps !== undefined && end !== undefined && end !== steps && lasts !== 0) {
    const reason = `decay ends with the last step of a run, ${steps}`;
    settings.refuse(`${path}.lr_decay_steps`, lasts, reason);
  }
  const common = {
    learningRate: settings.number(`${path}.learning_rate`),
    minimumLearningRate: settings.number(`${path}.min_decay_lr`),
    warmup,
  };
  if (steps !== undefined && (begin >= steps || lasts === 0)) {
    return { ...common, schedule: "constant" };
  }
  if (begin === warmup && shape !== "sqrt") return { ...common, schedule: shape };
  const decay = steps === undefined ? lasts : steps - begin;
  return { ...common, schedule: "wsd", decay, decayShape: shape };
}
