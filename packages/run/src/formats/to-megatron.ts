/** A resolved run as Megatron-LM's command line. */
import { microbatches } from "@trireme/workload";
import type { ResolvedRun } from "../resolved.ts";
import type { Unsupported } from "./interchange.ts";

/** Megatron-LM arguments, one word each, and what they cannot say. */
export interface MegatronArguments {
  readonly args: readonly string[];
  readonly unsupported: readonly Unsupported[];
}

/** Names and values; a value of true is a flag, of false or undefined nothing. */
type Settings = Readonly<Record<string, string | number | boolean | undefined>>;

/** The arguments that make Megatron-LM do what a run says; data and launcher are left to you. */
export function toMegatron(run: ResolvedRun): MegatronArguments {
  const settings = {
    ...modelSettings(run),
    ...planSettings(run),
    ...trainingSettings(run),
  };
  const args = Object.entries(settings).flatMap(([name, value]) => {
    if (value === undefined || value === false) return [];
    return value === true ? [`--${name}`] : [`--${name}`, String(value)];
  });
  return { args, unsupported: unsupportedOf(run) };
}

function modelSettings({ model }: ResolvedRun): Settings {
  const { kvHeads, heads, bias, qkvBias, position } = model;
  return {
    "num-layers": model.layers,
    "hidden-size": model.hidden,
    "num-attention-heads": heads,
    "group-query-attention": kvHeads !== heads,
    "num-query-groups": kvHeads === heads ? undefined : kvHeads,
    "kv-channels": model.headDim,
    "ffn-hidden-size": model.ffn,
    "vocab-size": model.vocab,
    "make-vocab-size-divisible-by": 1,
    "max-position-embeddings": model.context,
    "position-embedding-type": {
      learned: "learned_absolute",
      rotary: "rope",
      alibi: undefined,
      none: "none",
    }[position],
    "rotary-base": position === "rotary" ? model.rotaryBase : undefined,
    "norm-epsilon": model.normEpsilon,
    normalization: model.norm === "rmsnorm" ? "RMSNorm" : "LayerNorm",
    swiglu: model.activation === "swiglu",
    "squared-relu": model.activation === "squared-relu",
    "disable-bias-linear": !bias,
    "add-qkv-bias": qkvBias && !bias,
    "untie-embeddings-and-output-weights": !model.tied,
  };
}

function planSettings({ plan }: ResolvedRun): Settings {
  const { zero, recompute, precision } = plan;
  const granularity = recompute === "selective" || recompute === "full" ? recompute : undefined;
  const sharding = zero < 2 ? undefined : zero === 2 ? "optim_grads" : "optim_grads_params";
  return {
    "tensor-model-parallel-size": plan.tp,
    "pipeline-model-parallel-size": plan.pp,
    "context-parallel-size": plan.cp > 1 ? plan.cp : undefined,
    "num-virtual-stages-per-pipeline-rank": plan.vpp > 1 ? plan.vpp : undefined,
    "micro-batch-size": plan.microbatch,
    "global-batch-size": plan.globalBatch,
    "seq-length": plan.sequence,
    "sequence-parallel": plan.sequenceParallel,
    "no-scatter-gather-tensors-in-pipeline":
      !plan.scatterGather && plan.tp > 1 && !plan.sequenceParallel,
    "recompute-granularity": granularity,
    "recompute-method": recompute === "full" ? "uniform" : undefined,
    "recompute-num-layers": recompute === "full" ? 1 : undefined,
    bf16: precision === "bf16",
    fp16: precision === "fp16",
    "accumulate-allreduce-grads-in-fp32": precision === "fp16" && plan.gradientPrecision === "fp32",
    "use-distributed-optimizer": zero === 1,
    "use-megatron-fsdp": zero > 1,
    "data-parallel-sharding-strategy": sharding,
    "attention-backend": plan.flashAttention ? "flash" : "unfused",
    "no-masked-softmax-fusion": !plan.fusedSoftmax,
    "fp8-format": plan.matrixPrecision === "fp8" ? "hybrid" : undefined,
    "hidden-dropout": plan.dropout,
    "attention-dropout": plan.dropout,
    "overlap-grad-reduce": plan.overlapDataParallel,
    "tp-comm-overlap": plan.overlapTensorParallel,
    "no-overlap-p2p-communication": plan.vpp > 1 && !plan.overlapPointToPoint,
  };
}

function trainingSettings({ optimizer, steps, seed, checkpoint, evaluate }: ResolvedRun): Settings {
  const { schedule } = optimizer;
  const styles: Readonly<Record<string, string>> = {
    "inverse-sqrt": "inverse-square-root",
    wsd: "WSD",
  };
  const wsd = schedule === "wsd";
  const shape = optimizer.decayShape === "sqrt" ? "minus_sqrt" : optimizer.decayShape;
  return {
    optimizer: "adam",
    lr: optimizer.learningRate,
    "min-lr": optimizer.minimumLearningRate,
    "lr-warmup-iters": optimizer.warmup,
    "lr-decay-style": styles[schedule] ?? schedule,
    "lr-wsd-decay-iters": wsd ? optimizer.decay : undefined,
    "lr-wsd-decay-style": wsd ? shape : undefined,
    "adam-beta1": optimizer.beta1,
    "adam-beta2": optimizer.beta2,
    "adam-eps": optimizer.epsilon,
    "weight-decay": optimizer.weightDecay,
    "clip-grad": optimizer.clip,
    "train-iters": steps,
    seed,
    "save-interval": checkpoint.every,
    save: checkpoint.directory,
    "eval-interval": evaluate.every,
    "eval-iters": evaluate.batches,
  };
}

const alwaysOn = [
  "vocabParallelLoss",
  "fusedNorm",
  "fusedElementwise",
  "overlapGradientProducts",
] as const;

function unsupportedOf(run: ResolvedRun): readonly Unsupported[] {
  const { plan, data, checkpoint, sample } = run;
  const list: Unsupported[] = [];
  const refuse = (option: string, value: unknown, reason: string): void => {
    list.push({ option, value, reason });
  };
  const { vocab } = run.model;
  if (vocab % plan.tp !== 0) {
    const padded = Math.ceil(vocab / plan.tp) * plan.tp;
    refuse("model.vocab", vocab, `is padded to ${padded}, a multiple of tp ${plan.tp}`);
  }
  if (plan.schedule === "gpipe") refuse("plan.schedule", "gpipe", "Megatron-LM runs 1f1b");
  if (plan.recompute === "operators") {
    refuse("plan.recompute", "operators", "only selective and full");
  }
  if (plan.matrixPrecision === "fp4") refuse("plan.matrixPrecision", "fp4", "only fp8");
  if (plan.flashVersion !== undefined) {
    refuse("plan.flashVersion", plan.flashVersion, "the installed kernels decide");
  }
  for (const field of alwaysOn) {
    if (!plan[field]) refuse(`plan.${field}`, false, "Megatron-LM always does");
  }
  if (plan.stageLayers !== undefined) {
    refuse("plan.stageLayers", plan.stageLayers, "write --pipeline-model-parallel-layout by hand");
  }
  if (plan.precision === "bf16" && plan.gradientPrecision !== "fp32") {
    refuse("plan.gradientPrecision", plan.gradientPrecision, "fp32 is forced with bf16");
  }
  if (plan.vpp === 1 && plan.overlapPointToPoint && microbatches(plan) > 1 && plan.pp > 1) {
    refuse("plan.overlapPointToPoint", true, "only the interleaved schedule overlaps its sends");
  }
  if (data !== undefined) refuse("data", data.path, "Megatron-LM reads .bin and .idx: --data-path");
  if (checkpoint.interval !== undefined) {
    refuse("checkpoint.interval", checkpoint.interval, "only --save-interval, in steps");
  }
  if (sample !== undefined) refuse("sample", sample.prompt, "text is generated by another program");
  return list;
}
