/** DeepSpeed's JSON configuration in and out. It says nothing of the model: that is in the script. */
import { microbatches } from "@trireme/workload";
import { isGroup, valueAt } from "../problem.ts";
import type { ResolvedRun } from "../resolved.ts";
import { type Imported, type Unsupported, present } from "./interchange.ts";

/** Paths that `fromDeepSpeed` reads. */
const read = [
  "train_batch_size",
  "train_micro_batch_size_per_gpu",
  "gradient_accumulation_steps",
  "gradient_clipping",
  "bf16.enabled",
  "fp16.enabled",
  "zero_optimization.stage",
  "zero_optimization.overlap_comm",
  "optimizer.type",
  "optimizer.params.lr",
  "optimizer.params.betas",
  "optimizer.params.eps",
  "optimizer.params.weight_decay",
  "scheduler.type",
  "scheduler.params.warmup_num_steps",
  "scheduler.params.warmup_max_lr",
  "scheduler.params.warmup_type",
  "scheduler.params.cos_min_ratio",
  "scheduler.params.total_num_steps",
] as const;
type Key = (typeof read)[number];

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
  const unsupported: Unsupported[] = leaves(config)
    .filter(({ path }) => !read.some((key) => path === key || path.startsWith(`${key}.`)))
    .map(({ path, value }) => ({
      option: path,
      value,
      reason: "has no counterpart in a run description",
    }));
  const at = (key: Key): unknown => {
    const value = valueAt(config, key.split("."));
    return value === "auto" ? undefined : value;
  };
  const kind = at("optimizer.type");
  if (kind !== undefined && kind !== "AdamW" && kind !== "Adam") {
    unsupported.push({ option: "optimizer.type", value: kind, reason: "only Adam and AdamW" });
  }
  const scheduler = at("scheduler.type");
  const schedule = typeof scheduler === "string" ? schedules[scheduler] : undefined;
  if (scheduler !== undefined && schedule === undefined) {
    const reason = `only ${Object.keys(schedules).join(", ")}`;
    unsupported.push({ option: "scheduler.type", value: scheduler, reason });
  }
  if (schedule !== undefined && at("scheduler.params.warmup_type") !== "linear") {
    const value = at("scheduler.params.warmup_type") ?? "log, by default";
    const reason = "warm-up is a straight line here";
    unsupported.push({ option: "scheduler.params.warmup_type", value, reason });
  }
  const micro = at("train_micro_batch_size_per_gpu");
  const betas: readonly unknown[] = [at("optimizer.params.betas")].flat();
  const plan = present({
    dp: options.dp,
    microbatch: micro,
    globalBatch:
      at("train_batch_size") ?? product(micro, at("gradient_accumulation_steps"), options.dp),
    precision: at("bf16.enabled") === true ? "bf16" : at("fp16.enabled") === true ? "fp16" : "fp32",
    zero: at("zero_optimization.stage"),
    overlapDataParallel: at("zero_optimization.overlap_comm"),
  });
  const peak = at("scheduler.params.warmup_max_lr") ?? at("optimizer.params.lr");
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
  return { description: present({ plan, optimizer, steps }) ?? {}, unsupported };
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

/** Every value that is no group, with its dotted path. */
function leaves(value: unknown, path = ""): { readonly path: string; readonly value: unknown }[] {
  if (!isGroup(value) || Array.isArray(value)) return path === "" ? [] : [{ path, value }];
  return Object.entries(value).flatMap(([key, child]) =>
    leaves(child, path === "" ? key : `${path}.${key}`),
  );
}

/** A DeepSpeed configuration, and what it cannot say. */
export interface DeepSpeedConfiguration {
  readonly config: Readonly<Record<string, unknown>>;
  readonly unsupported: readonly Unsupported[];
}

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
  for (const degree of ["tp", "cp", "pp", "vpp"] as const) {
    if (plan[degree] > 1) refuse(`plan.${degree}`, plan[degree], "is set in the script");
  }
  if (type === undefined) {
    refuse("optimizer.schedule", optimizer.schedule, `only ${Object.values(schedules).join(", ")}`);
  } else if (type === "WarmupDecayLR" && optimizer.minimumLearningRate > 0) {
    refuse("optimizer.minimumLearningRate", optimizer.minimumLearningRate, "decay ends at 0");
  }
  if (plan.recompute !== "none") refuse("plan.recompute", plan.recompute, "is set in the script");
  if (run.data !== undefined) refuse("data", run.data.path, "is read by the script");
  return {
    config: {
      train_batch_size: plan.globalBatch,
      train_micro_batch_size_per_gpu: plan.microbatch,
      gradient_accumulation_steps: microbatches(plan),
      gradient_clipping: optimizer.clip,
      bf16: { enabled: plan.precision === "bf16" },
      fp16: { enabled: plan.precision === "fp16" },
      zero_optimization: { stage: plan.zero, overlap_comm: plan.overlapDataParallel },
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
