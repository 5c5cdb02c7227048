/** Models of GPT form and those that leave it by position, norm or block: the readers of their config.json files. */
import type { ModelOptions } from "../define-model.ts";
import { plainActivation } from "./activation.ts";
import type { ConfigFields } from "./config-fields.ts";
import { rotaryBase } from "./llama-family.ts";

export function gpt2(c: ConfigFields): ModelOptions {
  c.only("add_cross_attention", false, "attention to an encoder");
  const hidden = c.count("n_embd");
  return {
    layers: c.count("n_layer"),
    hidden,
    heads: c.count("n_head"),
    ffn: c.maybeCount("n_inner") ?? 4 * hidden,
    vocab: c.count("vocab_size"),
    context: c.count("n_positions", "n_ctx"),
    normEpsilon: c.number("layer_norm_epsilon", 1e-5),
    activation: plainActivation(c, "activation_function"),
    tied: c.flag("tie_word_embeddings", true),
  };
}

export function gptJ(c: ConfigFields): ModelOptions {
  const shape = gpt2(c);
  const headDim = shape.hidden / shape.heads;
  return {
    ...shape,
    position: "rotary",
    rotaryFraction: (c.maybeCount("rotary_dim") ?? headDim) / headDim,
    block: "parallel",
    qkvBias: false,
    outputBias: false,
    headBias: true,
    tied: c.flag("tie_word_embeddings", false),
  };
}

/** Sizes by the names that most files have, of models without groups of heads. */
function common(c: ConfigFields): ModelOptions {
  return {
    layers: c.count("num_hidden_layers"),
    hidden: c.count("hidden_size"),
    heads: c.count("num_attention_heads"),
    ffn: c.count("intermediate_size"),
    vocab: c.count("vocab_size"),
    context: c.count("max_position_embeddings"),
    normEpsilon: c.number("layer_norm_eps", 1e-5),
    activation: plainActivation(c, "hidden_act"),
  };
}

export function gptNeox(c: ConfigFields): ModelOptions {
  const bias = c.flag("attention_bias", true);
  const parallel = c.flag("use_parallel_residual", true);
  return {
    ...common(c),
    position: "rotary",
    rotaryBase:
      c.value("rotary_emb_base") === undefined
        ? rotaryBase(c)
        : c.number("rotary_emb_base", 10_000),
    rotaryFraction: c.number("rotary_pct", 0.25),
    block: parallel ? "parallel" : "sequential",
    sharedNorm: false,
    qkvBias: bias,
    outputBias: bias,
    tied: c.flag("tie_word_embeddings", false),
  };
}

export function phi(c: ConfigFields): ModelOptions {
  c.only("qk_layernorm", false, "LayerNorm of queries and keys");
  const shape = common(c);
  return {
    ...shape,
    kvHeads: c.maybeCount("num_key_value_heads") ?? shape.heads,
    position: "rotary",
    rotaryBase: rotaryBase(c),
    rotaryFraction: c.number("partial_rotary_factor", 0.5),
    block: "parallel",
    headBias: true,
    tied: c.flag("tie_word_embeddings", false),
  };
}

export function opt(c: ConfigFields): ModelOptions {
  const hidden = c.count("hidden_size");
  c.only("word_embed_proj_dim", hidden, "an embedding of another width than the layers");
  c.only("layer_norm_elementwise_affine", true, "norms without weights");
  const before = c.flag("do_layer_norm_before", true);
  return {
    layers: c.count("num_hidden_layers"),
    hidden,
    heads: c.count("num_attention_heads"),
    ffn: c.count("ffn_dim"),
    vocab: c.count("vocab_size"),
    context: c.count("max_position_embeddings"),
    extraPositions: 2,
    activation: plainActivation(c, "activation_function"),
    bias: c.flag("enable_bias", true),
    normPlacement: before ? "pre" : "post",
    finalNorm: before && !c.flag("_remove_final_layer_norm", false),
    tied: c.flag("tie_word_embeddings", true),
  };
}

export function bloom(c: ConfigFields): ModelOptions {
  c.only("apply_residual_connection_post_layernorm", false, "residuals of normalised inputs");
  return {
    layers: c.count("n_layer", "num_hidden_layers"),
    hidden: c.count("hidden_size", "n_embed"),
    heads: c.count("n_head", "num_attention_heads"),
    vocab: c.count("vocab_size"),
    context: c.maybeCount("seq_length") ?? 2048,
    position: "alibi",
    embeddingNorm: true,
    normEpsilon: c.number("layer_norm_epsilon", 1e-5),
    tied: c.flag("tie_word_embeddings", true),
  };
}

/** One key head for all, one for each group, or one for each head. */
export function falcon(c: ConfigFields): ModelOptions {
  const heads = c.count("num_attention_heads", "n_head");
  const hidden = c.count("hidden_size");
  const grouped = c.flag("new_decoder_architecture", false);
  const parallel = grouped || c.flag("parallel_attn", true);
  const one = c.flag("multi_query", true);
  const norms = c.maybeCount("num_ln_in_parallel_attn") ?? (grouped ? 2 : 1);
  const kvHeads = grouped ? (c.maybeCount("num_kv_heads", "n_head_kv") ?? heads) : one ? 1 : heads;
  return {
    layers: c.count("num_hidden_layers", "n_layer"),
    hidden,
    heads,
    kvHeads,
    ffn: c.maybeCount("ffn_hidden_size") ?? 4 * hidden,
    vocab: c.count("vocab_size"),
    context: c.maybeCount("max_position_embeddings") ?? 2048,
    position: c.flag("alibi", false) ? "alibi" : "rotary",
    rotaryBase: rotaryBase(c),
    block: parallel ? "parallel" : "sequential",
    sharedNorm: parallel && norms === 1,
    normEpsilon: c.number("layer_norm_epsilon", 1e-5),
    activation: plainActivation(c, "activation"),
    bias: c.flag("bias", false),
    tied: c.flag("tie_word_embeddings", true),
  };
}

/** The encoder with its pooler; what a task puts behind it has a shape of its own. */
export function bert(c: ConfigFields): ModelOptions {
  c.only("position_embedding_type", "absolute", "positions relative to each other");
  c.only("is_decoder", false, "a decoder of this form");
  return {
    ...common(c),
    normEpsilon: c.number("layer_norm_eps", 1e-12),
    segments: c.natural("type_vocab_size", 2),
    embeddingNorm: true,
    finalNorm: false,
    normPlacement: "post",
    causal: false,
    pooler: true,
    tied: c.flag("tie_word_embeddings", true),
  };
}
