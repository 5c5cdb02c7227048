/** Dense models of Llama form and what leaves it: the readers of their config.json files. */
import type { ModelOptions } from "../define-model.ts";
import { gatedActivation, plainActivation } from "./activation.ts";
import { type ConfigFields, isGroup } from "./config-fields.ts";
import { windowOf } from "./layer-pattern.ts";

/** The shape that files of Llama's kind share. */
export function llama(c: ConfigFields, tied = false): ModelOptions {
  const hidden = c.count("hidden_size");
  const heads = c.count("num_attention_heads");
  const attentionBias = c.flag("attention_bias", false);
  const headDim = c.maybeCount("head_dim");
  return {
    layers: c.count("num_hidden_layers"),
    hidden,
    heads,
    kvHeads: c.maybeCount("num_key_value_heads") ?? heads,
    ...(headDim === undefined ? {} : { headDim }),
    ffn: c.count("intermediate_size"),
    vocab: c.count("vocab_size"),
    context: c.count("max_position_embeddings"),
    position: "rotary",
    rotaryBase: rotaryBase(c),
    norm: "rmsnorm",
    normEpsilon: c.number("rms_norm_eps", 1e-6),
    activation: gatedActivation(c, "hidden_act"),
    bias: c.flag("mlp_bias", false),
    qkvBias: attentionBias,
    outputBias: attentionBias,
    tied: c.flag("tie_word_embeddings", tied),
  };
}

/** The base of the angles, which later files keep in a group; their scaling is no matter of shape. */
export function rotaryBase(c: ConfigFields): number {
  const grouped = c.value("rope_theta") === undefined && isGroup(c.value("rope_parameters"));
  return (grouped ? c.group("rope_parameters") : c).number("rope_theta", 10_000);
}

function layersOf(c: ConfigFields): number {
  return c.count("num_hidden_layers");
}

export function mistral(c: ConfigFields): ModelOptions {
  return { ...llama(c), ...windowOf(c, layersOf(c), 0) };
}

/** Windows only where `use_sliding_window` says so, from layer `max_window_layers` on. */
export function qwen2(c: ConfigFields): ModelOptions {
  const shape = { ...llama(c), qkvBias: c.flag("qkv_bias", true), outputBias: false };
  return c.flag("use_sliding_window", false) ? { ...shape, ...qwenWindow(c) } : shape;
}

export function qwen3(c: ConfigFields): ModelOptions {
  const shape: ModelOptions = { ...llama(c), qkNorm: "head" };
  return c.flag("use_sliding_window", false) ? { ...shape, ...qwenWindow(c) } : shape;
}

function qwenWindow(c: ConfigFields): ReturnType<typeof windowOf> {
  const layers = layersOf(c);
  const first = c.natural("max_window_layers", 0);
  if (c.value("layer_types") !== undefined) return windowOf(c, layers, 0);
  if (first >= layers) return {};
  if (first === 0) return windowOf(c, layers, 0);
  return c.fail(
    `max_window_layers ${first}: a model has windows in all layers or in all but every n-th; only 0 or ${layers} is read`,
  );
}

export function gemma(c: ConfigFields): ModelOptions {
  const activation = gatedActivation(c, "hidden_activation", "hidden_act");
  return { ...llama(c, true), activation };
}

export function gemma2(c: ConfigFields): ModelOptions {
  return { ...gemma(c), normPlacement: "both", ...windowOf(c, layersOf(c), 2) };
}

export function gemma3(c: ConfigFields): ModelOptions {
  const every = c.maybeCount("sliding_window_pattern", "_sliding_window_pattern") ?? 6;
  return {
    ...gemma(c),
    normPlacement: "both",
    qkNorm: "head",
    ...windowOf(c, layersOf(c), every),
  };
}

export function phi3(c: ConfigFields): ModelOptions {
  const rotaryFraction = c.number("partial_rotary_factor", 1);
  return { ...llama(c), rotaryFraction, ...windowOf(c, layersOf(c), 0) };
}

/** Norms without weights (arXiv 2402.00838). */
export function olmo(c: ConfigFields): ModelOptions {
  return {
    ...llama(c),
    norm: "layernorm",
    normEpsilon: 1e-5,
    normBias: false,
    normWeights: false,
  };
}

export function olmo2(c: ConfigFields): ModelOptions {
  return { ...llama(c), normPlacement: "post", qkNorm: "all" };
}

export function cohere(c: ConfigFields): ModelOptions {
  c.only("use_qk_norm", false, "norms of queries and keys with weights for each head");
  return {
    ...llama(c, true),
    norm: "layernorm",
    normEpsilon: c.number("layer_norm_eps", 1e-5),
    normBias: false,
    block: "parallel",
  };
}

export function starcoder2(c: ConfigFields): ModelOptions {
  c.only("norm_type", "layer_norm", "another norm");
  c.only("mlp_type", "default", "another feed-forward block");
  const bias = c.flag("use_bias", true);
  return {
    ...llama(c, true),
    norm: "layernorm",
    normEpsilon: c.number("norm_epsilon", 1e-5),
    activation: plainActivation(c, "hidden_act"),
    bias,
    qkvBias: bias,
    outputBias: bias,
    ...windowOf(c, layersOf(c), 0),
  };
}

/** GLM-4 in transformers' own form: queries, keys and values have biases, half of a head is rotated. */
export function glm(c: ConfigFields): ModelOptions {
  return {
    ...llama(c),
    outputBias: false,
    rotaryFraction: c.number("partial_rotary_factor", 0.5),
  };
}

export function glm4(c: ConfigFields): ModelOptions {
  return { ...glm(c), normPlacement: "both" };
}

/** GLM-4 as its authors' own code names its fields. */
export function chatGlm(c: ConfigFields): ModelOptions {
  c.only("rmsnorm", true, "LayerNorm");
  c.only("post_layer_norm", true, "no norm before the head");
  c.only("apply_residual_connection_post_layernorm", false, "residuals of normalised inputs");
  const bias = c.flag("add_bias_linear", false);
  const heads = c.count("num_attention_heads");
  const grouped = c.flag("multi_query_attention", false);
  return {
    layers: c.count("num_layers"),
    hidden: c.count("hidden_size"),
    heads,
    kvHeads: grouped ? c.count("multi_query_group_num") : heads,
    headDim: c.count("kv_channels"),
    ffn: c.count("ffn_hidden_size"),
    vocab: c.count("padded_vocab_size"),
    context: c.count("seq_length"),
    position: "rotary",
    rotaryBase: 10_000 * c.number("rope_ratio", 1),
    rotaryFraction: 0.5,
    norm: "rmsnorm",
    normEpsilon: c.number("layernorm_epsilon", 1e-5),
    activation: "swiglu",
    bias,
    qkvBias: bias || c.flag("add_qkv_bias", false),
    outputBias: bias,
    tied: c.flag("tie_word_embeddings", false),
  };
}
