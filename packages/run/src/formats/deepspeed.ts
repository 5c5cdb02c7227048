/** DeepSpeed's JSON configuration in and out. It says nothing of the model: that is in the script. */
import { microbatches, model as presetModel } from "@trireme/workload";
import type { ResolvedRun } from "../resolved.ts";
import { type Imported, type Unsupported, entry, present } from "./interchange.ts";
import { SettingTree } from "./setting-tree.ts";
import { type Reach, unexpressed } from "./unexpressed.ts";

const schedules: Readonly<Record<string, string>> = {
  WarmupLR: "constant",
  WarmupDecayLR: "linear",
  WarmupCosineLR: "cosine",
};

/**
 * Reads a parsed DeepSpeed configuration. `model` and `cluster` have to be added.
 * @param options.dp Replicas, where the file gives accumulation steps and no batch size.
 */
export function fromDeepSpeed(config: unknown, options: { readonly dp?: number } = {}): Imported {
  const tree = new SettingTree(config);
  const at = (path: string): unknown => {
    const value = tree.value(path);
    return value === "auto" ? undefined : value;
  };
  const kind = at("optimizer.type");
  if (kind !== undefined && kind !== "AdamW" && kind !== "Adam") {
    tree.refuse("optimizer.type", kind, "only Adam and AdamW");
  }
  const scheduler = at("scheduler.type");
  const schedule = entry(schedules, scheduler);
  if (scheduler !== undefined && schedule === undefined) {
    const reason = `only ${Object.keys(schedules).join(", ")}`;
    tree.refuse("scheduler.type", scheduler, reason);
  }
  if (schedule !== undefined && at("scheduler.params.warmup_type") !== "linear") {
    const value = at("scheduler.params.warmup_type") ?? "log, by default";
    const reason = "warm-up is a straight line here";
    tree.refuse("scheduler.params.warmup_type", value, reason);
  }
  const micro = at("train_micro_batch_size_per_gpu");
  const all = at("train_batch_size");
  const accumulation = at("gradient_accumulation_steps");
  const bf16 = at("bf16.enabled") === true;
  const fp16 = at("fp16.enabled") === true;
  const rate = at("optimizer.params.lr");
  const betas: readonly unknown[] = [at("optimizer.params.betas")].flat();
  const plan = present({
    dp: options.dp,
    microbatch: micro,
    globalBatch: all ?? product(micro, accumulation, options.dp),
    precision: bf16 ? "bf16" : fp16 ? "fp16" : "fp32",
    zero: at("zero_optimization.stage"),
    overlapDataParallel: at("zero_optimization.overlap_comm"),
    gradientPrecision: at("data_types.grad_accum_dtype"),
    reductionPrecision: at("communication_data_type"),
    gradientExchange: exchangeOf(at("zero_optimization.reduce_scatter")),
    offload: offloadOf(tree),
  });
  const peak = at("scheduler.params.warmup_max_lr") ?? rate;
  const optimizer = present({
    learningRate: peak,
    warmup: at("scheduler.params.warmup_num_steps"),
    schedule,
    minimumLearningRate: floorOf(schedule, peak, at("scheduler.params.cos_min_ratio")),
    beta1: betas[0],
    beta2: betas[1],
    epsilon: at("optimizer.params.eps"),
    weightDecay: at("optimizer.params.weight_decay"),
    clip: at("gradient_clipping"),
  });
  const steps = at("scheduler.params.total_num_steps");
  const warmup = at("scheduler.params.warmup_type");
  if (schedule === undefined && warmup !== undefined && scheduler === undefined) {
    tree.refuse(
      "scheduler.params.warmup_type",
      warmup,
      "belongs to a scheduler, and none is named",
    );
  }
  // Of one schedule alone, and read there.
  at("scheduler.params.cos_min_ratio");
  return {
    description: present({ plan, optimizer, steps }) ?? {},
    unsupported: tree.unsupported(),
  };
}

/** Without scattering, ZeRO sums all gradients on all replicas. */
function exchangeOf(scattered: unknown): "all-reduce" | undefined {
  return scattered === false ? "all-reduce" : undefined;
}

/** Optimizer state on the host; from a disk, or weights beside it, nothing is read. */
function offloadOf(tree: SettingTree): string | undefined {
  const path = "zero_optimization.offload_optimizer.device";
  const device = tree.value(path);
  if (device === undefined || device === "none") return undefined;
  return device === "cpu" ? "optimizer" : tree.refuse(path, device, "only cpu and none");
}

/** Where decay ends: WarmupDecayLR at 0, WarmupCosineLR at a share of the peak. */
function floorOf(schedule: string | undefined, peak: unknown, share: unknown): number | undefined {
  if (schedule === "linear") return 0;
  if (schedule !== "cosine" || typeof peak !== "number") return undefined;
  return peak * (typeof share === "number" ? share : 1e-4);
}

function product(...factors: readonly unknown[]): number | undefined {
  const numbers = factors.filter((factor) => typeof factor === "number");
  return numbers.length === factors.length ? numbers.reduce((a, b) => a * b, 1) : undefined;
}

/** A DeepSpeed configuration, and what it cannot say. */
export interface DeepSpeedConfiguration {
  readonly config: Readonly<Record<string, unknown>>;
  readonly unsupported: readonly Unsupported[];
}

const reach: Reach = {
  form: {},
  // The model is listed whole.
  model: Object.keys(presetModel("gpt2")).concat(["window", "latent", "experts", "adapter"]),
  plan: [
    "precision",
    "gradientPrecision",
    "reductionPrecision",
    "gradientExchange",
    "zero",
    "offload",
    "overlapDataParallel",
  ],
  reason: "is set in the script",
};

/** The DeepSpeed configuration of a run; model, parallel degrees and data belong in its script. */
export function toDeepSpeed(run: ResolvedRun): DeepSpeedConfiguration {
  const { plan, optimizer } = run;
  const type = Object.keys(schedules).find((name) => schedules[name] === optimizer.schedule);
  const unsupported: Unsupported[] = [
    { option: "model", value: run.model.name, reason: "is built by the script" },
  ];
  const refuse = (option: string, value: unknown, reason: string): void => {
    unsupported.push({ option, value, reason });
  };
  if (type === undefined) {
    refuse("optimizer.schedule", optimizer.schedule, `only ${Object.values(schedules).join(", ")}`);
  } else if (type === "WarmupDecayLR" && optimizer.minimumLearningRate > 0) {
    refuse("optimizer.minimumLearningRate", optimizer.minimumLearningRate, "decay ends at 0");
  }
  if (plan.offload === "optimizer" && plan.zero === 0) {
    refuse("plan.offload", "optimizer", "needs zero 1 or more");
  }
  unsupported.push(...unexpressed(run, reach));
  if (run.data !== undefined) refuse("data", run.data.path, "is read by the script");
  return {
    config: {
      train_batch_size: plan.globalBatch,
      train_micro_batch_size_per_gpu: plan.microbatch,
      // Pipelines that differ have no one number of steps.
      ...(plan.pipelines === undefined ? { gradient_accumulation_steps: microbatches(plan) } : {}),
      gradient_clipping: optimizer.clip,
      bf16: { enabled: plan.precision === "bf16" },
      fp16: { enabled: plan.precision === "fp16" },
      data_types: { grad_accum_dtype: plan.gradientPrecision },
      ...(plan.reductionPrecision === undefined
        ? {}
        : { communication_data_type: plan.reductionPrecision }),
      zero_optimization: {
        stage: plan.zero,
        overlap_comm: plan.overlapDataParallel,
        ...(plan.gradientExchange === "all-reduce" ? { reduce_scatter: false } : {}),
        ...(plan.offload === "optimizer" && plan.zero > 0
          ? { offload_optimizer: { device: "cpu" } }
          : {}),
      },
      optimizer: {
        type: "AdamW",
        params: {
          lr: optimizer.learningRate,
          betas: [optimizer.beta1, optimizer.beta2],
          eps: optimizer.epsilon,
          weight_decay: optimizer.weightDecay,
        },
      },
      ...(type !== undefined && { scheduler: { type, params: schedulerParams(type, run) } }),
    },
    unsupported,
  };
}

function schedulerParams(type: string, { optimizer, steps }: ResolvedRun): unknown {
  const warmup = { warmup_num_steps: optimizer.warmup, warmup_type: "linear" };
  if (type === "WarmupCosineLR") {
    const share = optimizer.minimumLearningRate / optimizer.learningRate;
    return { ...warmup, cos_min_ratio: share, total_num_steps: steps };
  }
  const rates = { ...warmup, warmup_max_lr: optimizer.learningRate };
  return type === "WarmupLR" ? rates : { ...rates, total_num_steps: steps };
}
