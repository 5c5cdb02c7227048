/**
 * Megatron-LM's command line (megatron/training/arguments.py) as a run description. What it leaves
 * out has Megatron's default, which is written down here where it differs from ours.
 */
import { type Imported, type Unsupported, entry, present } from "./interchange.ts";
import { type Refuse, expertsOf, latentOf, windowOf } from "./megatron-experts.ts";
import { planOf } from "./from-megatron-plan.ts";
import { routerOf } from "./megatron-router.ts";
import { OptionList } from "./option-list.ts";

/**
 * Reads Megatron-LM arguments: the text of a script's argument arrays, or a list of words.
 * The number of devices is the launcher's business (torchrun), so `cluster` has to be added, and so
 * has the vocabulary where only a tokenizer's file tells it.
 * @throws RunError for a value that is no number where one must be, or an unset shell variable.
 */
export function fromMegatron(args: string | readonly string[]): Imported {
  const options = new OptionList(args);
  const unsupported: Unsupported[] = [];
  const refuse = (option: string, value: unknown, reason: string): undefined => {
    unsupported.push({ option, value, reason });
  };
  const model = modelOf(options, refuse);
  const description = present({
    model,
    plan: planOf(options, refuse),
    optimizer: optimizerOf(options, refuse),
    router: routerOf(options, refuse),
    steps: options.number("--train-iters"),
    seed: options.number("--seed") ?? 1234,
    checkpoint: present({
      every: options.number("--save-interval"),
      directory: options.text("--save"),
    }),
    evaluate: present({
      every: options.number("--eval-interval"),
      batches: options.number("--eval-iters") || undefined,
    }),
  });
  for (const { name, value } of options.leftOver()) {
    refuse(name, value === "" ? true : value, "has no counterpart in a run description");
  }
  return { description: description ?? {}, unsupported };
}

function modelOf(o: OptionList, refuse: Refuse): unknown {
  const hidden = o.number("--hidden-size");
  const swiglu = o.flag("--swiglu");
  const activation = o.flag("--squared-relu") ? "squared-relu" : "gelu";
  const bias = !o.flag("--disable-bias-linear");
  const grouped = o.flag("--group-query-attention");
  const groups = o.number("--num-query-groups");
  const latent = latentOf(o);
  const normed = o.flag("--qk-layernorm");
  const channels = o.number("--kv-channels");
  return present({
    layers: o.number("--num-layers"),
    hidden,
    heads: o.number("--num-attention-heads"),
    kvHeads: grouped ? (groups ?? 1) : undefined,
    headDim: latent === undefined ? channels : undefined,
    ffn: o.number("--ffn-hidden-size") ?? (swiglu && hidden ? swigluWidth(hidden) : undefined),
    vocab: vocabularyOf(o),
    context: o.number("--max-position-embeddings"),
    position: positionOf(o, refuse),
    rotaryBase: o.number("--rotary-base"),
    norm: normOf(o, refuse),
    normEpsilon: o.number("--norm-epsilon") ?? 1e-5,
    activation: swiglu ? "swiglu" : activation,
    activationClamp: o.number("--activation-func-clamp-value"),
    bias,
    qkvBias: o.flag("--add-qkv-bias") || bias,
    tied: !o.flag("--untie-embeddings-and-output-weights"),
    rotaryFraction: o.number("--rotary-percent"),
    qkNorm: normed && latent === undefined ? "head" : undefined,
    attentionSinks: sinksOf(o, refuse),
    prediction: o.number("--mtp-num-layers"),
    window: windowOf(o, refuse),
    latent,
    experts: expertsOf(o, refuse),
  });
}

function sinksOf(o: OptionList, refuse: Refuse): boolean | undefined {
  const type = o.text("--softmax-type") ?? "vanilla";
  if (type === "vanilla") return undefined;
  return type === "learnable" ? true : refuse("--softmax-type", type, "only vanilla and learnable");
}

/** Two thirds of the usual width, in multiples of 64, since there are three matrices and not two. */
function swigluWidth(hidden: number): number {
  return Math.floor((4 * hidden * 2) / 3 / 64) * 64;
}

/** Padded so that every tensor-parallel rank has as many rows. */
function vocabularyOf(o: OptionList): number | undefined {
  const padded = o.number("--padded-vocab-size");
  const size = o.number("--vocab-size");
  const multiple =
    (o.number("--make-vocab-size-divisible-by") ?? 128) *
    (o.number("--tensor-model-parallel-size") ?? 1);
  return padded ?? (size === undefined ? undefined : Math.ceil(size / multiple) * multiple);
}

function positionOf(o: OptionList, refuse: Refuse): string | undefined {
  const rotary = o.flag("--use-rotary-position-embeddings");
  const type = o.text("--position-embedding-type") ?? (rotary ? "rope" : "learned_absolute");
  switch (type) {
    case "learned_absolute":
      return "learned";
    case "rope":
      return "rotary";
    case "none":
      return "none";
    default:
      return refuse("--position-embedding-type", type, "only learned_absolute, rope and none");
  }
}

function normOf(o: OptionList, refuse: Refuse): string | undefined {
  const norm = o.text("--normalization") ?? "LayerNorm";
  if (norm === "LayerNorm" || norm === "RMSNorm") return norm.toLowerCase();
  return refuse("--normalization", norm, "only LayerNorm and RMSNorm");
}

/** Styles of decay that are called otherwise here. */
const schedules: Readonly<Record<string, string>> = {
  "inverse-square-root": "inverse-sqrt",
  WSD: "wsd",
};

function optimizerOf(o: OptionList, refuse: Refuse): unknown {
  const kind = o.text("--optimizer") ?? "adam";
  if (kind !== "adam") refuse("--optimizer", kind, "only adam, which decays weights as AdamW does");
  const style = o.text("--lr-decay-style") ?? "linear";
  const schedule = entry(schedules, style) ?? style;
  if (!["constant", "linear", "cosine", "inverse-sqrt", "wsd"].includes(schedule)) {
    refuse("--lr-decay-style", style, "has no counterpart");
  }
  const steps = o.number("--train-iters");
  const decayed = o.number("--lr-decay-iters");
  if (decayed !== undefined && decayed !== steps) {
    refuse("--lr-decay-iters", decayed, "decay ends with the last step of a run");
  }
  return present({
    learningRate: o.number("--lr"),
    minimumLearningRate: o.number("--min-lr") ?? 0,
    warmup: o.number("--lr-warmup-iters"),
    schedule,
    decay: schedule === "wsd" ? o.number("--lr-wsd-decay-iters") : undefined,
    decayShape: schedule === "wsd" ? decayShapeOf(o, refuse) : undefined,
    beta1: o.number("--adam-beta1") ?? 0.9,
    beta2: o.number("--adam-beta2") ?? 0.999,
    epsilon: o.number("--adam-eps") ?? 1e-8,
    weightDecay: o.number("--weight-decay") ?? 0.01,
    clip: o.number("--clip-grad") ?? 1,
  });
}

function decayShapeOf(o: OptionList, refuse: Refuse): string | undefined {
  const style = o.text("--lr-wsd-decay-style") ?? "exponential";
  if (style === "minus_sqrt") return "sqrt";
  if (style === "linear" || style === "cosine") return style;
  return refuse("--lr-wsd-decay-style", style, "only linear, cosine and minus_sqrt");
}
