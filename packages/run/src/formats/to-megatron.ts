/** A resolved run as Megatron-LM's command line. */
import type { ResolvedRun } from "../resolved.ts";
import type { Unsupported } from "./interchange.ts";
import {
  type Refuse,
  type Settings,
  expertSettings,
  latentSettings,
  windowSettings,
} from "./megatron-experts.ts";
import { routerSettings } from "./megatron-router.ts";
import { reach } from "./megatron-reach.ts";
import { planSettings } from "./to-megatron-plan.ts";
import { unexpressed } from "./unexpressed.ts";

/** Megatron-LM arguments, one word each, and what they cannot say. */
export interface MegatronArguments {
  readonly args: readonly string[];
  readonly unsupported: readonly Unsupported[];
}

/** The arguments that make Megatron-LM do what a run says; data and launcher are left to you. */
export function toMegatron(run: ResolvedRun): MegatronArguments {
  const { settings, unsupported } = megatronSettings(run);
  const args = Object.entries(settings).flatMap(([name, value]) => {
    if (value === undefined || value === false) return [];
    // A list of words is several values.
    return value === true ? [`--${name}`] : [`--${name}`, ...String(value).split(" ")];
  });
  return { args, unsupported };
}

/** The same as names and values, for the formats that regroup them. */
export function megatronSettings(run: ResolvedRun): {
  readonly settings: Settings;
  readonly unsupported: readonly Unsupported[];
} {
  const unsupported: Unsupported[] = [];
  const refuse: Refuse = (option, value, reason) => {
    unsupported.push({ option, value, reason });
  };
  const settings = {
    ...modelSettings(run, refuse),
    ...planSettings(run, refuse),
    ...routerSettings(run, refuse),
    ...trainingSettings(run),
  };
  refuseValues(run, refuse);
  return { settings, unsupported: [...unsupported, ...unexpressed(run, reach)] };
}

function modelSettings({ model }: ResolvedRun, refuse: Refuse): Settings {
  const { kvHeads, heads, bias, qkvBias, position, qkNorm, latent, activation } = model;
  if (position === "alibi") refuse("model.position", position, "only learned, rotary and none");
  if (qkNorm === "all") refuse("model.qkNorm", qkNorm, "only for each head: --qk-layernorm");
  if (bias && !qkvBias) refuse("model.qkvBias", qkvBias, "comes with every other bias");
  if (activation === "geglu" || activation === "relu") {
    refuse("model.activation", activation, "only gelu, swiglu and squared-relu");
  }
  return {
    "num-layers": model.layers,
    "hidden-size": model.hidden,
    "num-attention-heads": heads,
    "group-query-attention": kvHeads !== heads,
    "num-query-groups": kvHeads === heads ? undefined : kvHeads,
    "kv-channels": latent === undefined ? model.headDim : undefined,
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
    "rotary-percent": model.rotaryFraction === 1 ? undefined : model.rotaryFraction,
    "norm-epsilon": model.normEpsilon,
    normalization: model.norm === "rmsnorm" ? "RMSNorm" : "LayerNorm",
    swiglu: activation === "swiglu",
    "squared-relu": activation === "squared-relu",
    "activation-func-clamp-value": model.activationClamp || undefined,
    "disable-bias-linear": !bias,
    "add-qkv-bias": qkvBias && !bias,
    "qk-layernorm": qkNorm === "head" || latent !== undefined,
    "softmax-type": model.attentionSinks ? "learnable" : undefined,
    "untie-embeddings-and-output-weights": !model.tied,
    "mtp-num-layers": model.prediction === 0 ? undefined : model.prediction,
    ...windowSettings(model.window),
    ...latentSettings(latent),
    ...expertSettings(model, refuse),
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

/** Values of settings that Megatron-LM has, and does not take. */
function refuseValues(run: ResolvedRun, refuse: Refuse): void {
  const { plan, data, checkpoint, guard, sample } = run;
  const { vocab } = run.model;
  if (vocab % plan.tp !== 0) {
    const padded = Math.ceil(vocab / plan.tp) * plan.tp;
    refuse("model.vocab", vocab, `is padded to ${padded}, a multiple of tp ${plan.tp}`);
  }
  if (plan.schedule !== (plan.vpp > 1 ? "interleaved" : "1f1b")) {
    refuse("plan.schedule", plan.schedule, "Megatron-LM runs 1f1b, or interleaved with chunks");
  }
  if (plan.recompute === "operators" || plan.recompute === "rematerialise") {
    refuse("plan.recompute", plan.recompute, "only selective and full");
  }
  if (plan.matrixPrecision !== undefined && plan.matrixPrecision !== "fp8") {
    refuse("plan.matrixPrecision", plan.matrixPrecision, "only fp8");
  }
  if (plan.flashVersion !== undefined) {
    refuse("plan.flashVersion", plan.flashVersion, "the installed kernels decide");
  }
  for (const field of alwaysOn) {
    if (!plan[field]) refuse(`plan.${field}`, false, "Megatron-LM always does");
  }
  const kept = plan.precision === "fp16" ? ["fp32", "fp16"] : ["fp32"];
  if (!kept.includes(plan.gradientPrecision)) {
    const reason = `only ${kept.join(" or ")} with ${plan.precision}`;
    refuse("plan.gradientPrecision", plan.gradientPrecision, reason);
  }
  if (plan.vpp === 1 && plan.overlapPointToPoint) {
    refuse("plan.overlapPointToPoint", true, "only the interleaved schedule overlaps its sends");
  }
  if (data !== undefined) refuse("data", data.path, "Megatron-LM reads .bin and .idx: --data-path");
  if (checkpoint.interval !== undefined) {
    refuse("checkpoint.interval", checkpoint.interval, "only --save-interval, in steps");
  }
  if (guard !== undefined) refuse("guard", JSON.stringify(guard), "spikes are not gone back from");
  if (sample !== undefined) refuse("sample", sample.prompt, "text is generated by another program");
}
