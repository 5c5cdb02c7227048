/** Mixtures of experts: the readers of their config.json files. */
import type { ModelOptions } from "../define-model.ts";
import { gatedActivation } from "./activation.ts";
import { type ConfigFields, isGroup, print } from "./config-fields.ts";
import { sparseLayers, windowOf } from "./layer-pattern.ts";
import { llama, qwen2, qwen3 } from "./llama-family.ts";

export function mixtral(c: ConfigFields): ModelOptions {
  const count = c.count("num_local_experts");
  const active = c.count("num_experts_per_tok");
  return {
    ...llama(c),
    ...windowOf(c, c.count("num_hidden_layers"), 0),
    experts: { count, active },
  };
}

export function qwen2Moe(c: ConfigFields): ModelOptions {
  return {
    ...qwen2(c),
    experts: {
      count: c.count("num_experts"),
      active: c.count("num_experts_per_tok"),
      ffn: c.count("moe_intermediate_size"),
      sharedFfn: c.count("shared_expert_intermediate_size"),
      sharedGate: true,
      ...sparseLayers(c),
    },
  };
}

export function qwen3Moe(c: ConfigFields): ModelOptions {
  return {
    ...qwen3(c),
    experts: {
      count: c.count("num_experts"),
      active: c.count("num_experts_per_tok"),
      ffn: c.count("moe_intermediate_size"),
      ...sparseLayers(c),
    },
  };
}

/** DeepSeekMoE, and with latent attention DeepSeek-V2 and V3. */
export function deepseek(c: ConfigFields): ModelOptions {
  c.only("moe_layer_freq", 1, "dense layers between those with experts");
  const ffn = c.count("moe_intermediate_size");
  const choice = c.value("topk_method");
  const known = ["greedy", "group_limited_greedy", "noaux_tc"];
  if (choice !== undefined && !known.some((name) => name === choice)) {
    return c.fail(`topk_method ${print(choice)} is not one of ${known.join(", ")}`);
  }
  return {
    ...llama(c),
    experts: {
      count: c.count("n_routed_experts"),
      active: c.count("num_experts_per_tok"),
      ffn,
      sharedFfn: c.natural("n_shared_experts", 0) * ffn,
      denseLayers: c.natural("first_k_dense_replace", 0),
      selectionBias: choice === "noaux_tc",
    },
  };
}

export function deepseekV2(c: ConfigFields): ModelOptions {
  const { kvHeads: _, headDim: __, ...shape } = deepseek(c);
  return {
    ...shape,
    latent: {
      queryRank: c.natural("q_lora_rank", 0),
      keyValueRank: c.count("kv_lora_rank"),
      nopeDim: c.count("qk_nope_head_dim"),
      ropeDim: c.count("qk_rope_head_dim"),
      valueDim: c.count("v_head_dim"),
    },
    prediction: c.natural("num_nextn_predict_layers", 0),
  };
}

/** The choice of experts by score and bias is V3's only one: files of some ages leave its name out. */
export function deepseekV3(c: ConfigFields): ModelOptions {
  const shape = deepseekV2(c);
  return { ...shape, experts: { ...shape.experts!, selectionBias: true } };
}

export function phiMoe(c: ConfigFields): ModelOptions {
  return {
    ...mixtral(c),
    norm: "layernorm",
    headBias: c.flag("lm_head_bias", false),
  };
}

export function olmoe(c: ConfigFields): ModelOptions {
  const experts = { count: c.count("num_experts"), active: c.count("num_experts_per_tok") };
  return { ...llama(c), qkNorm: "all", experts };
}

export function gptOss(c: ConfigFields): ModelOptions {
  const layers = c.count("num_hidden_layers");
  return {
    ...llama(c),
    ...windowOf(c, layers, 2),
    bias: true,
    activationClamp: c.number("swiglu_limit", 7),
    attentionSinks: true,
    experts: {
      count: c.count("num_local_experts"),
      active: c.count("num_experts_per_tok", "experts_per_token"),
      routerBias: true,
    },
  };
}

/** Attention in chunks counts as attention to all; what normalises queries and keys has no weights. */
export function llama4(c: ConfigFields): ModelOptions {
  const ffn = c.count("intermediate_size");
  return {
    ...llama(c),
    ffn: c.count("intermediate_size_mlp"),
    experts: {
      count: c.count("num_local_experts"),
      active: c.count("num_experts_per_tok"),
      ffn,
      sharedFfn: ffn,
      every: c.count("interleave_moe_layer_step"),
    },
  };
}

export function dbrx(c: ConfigFields): ModelOptions {
  const attention = c.group("attn_config");
  const ffn = c.group("ffn_config");
  const heads = c.count("n_heads");
  return {
    layers: c.count("n_layers"),
    hidden: c.count("d_model"),
    heads,
    kvHeads: attention.maybeCount("kv_n_heads") ?? heads,
    ffn: ffn.count("ffn_hidden_size"),
    vocab: c.count("vocab_size"),
    context: c.count("max_seq_len"),
    position: "rotary",
    rotaryBase: attention.number("rope_theta", 10_000),
    norm: "layernorm",
    normBias: false,
    activation: isGroup(ffn.value("ffn_act_fn"))
      ? gatedActivation(ffn.group("ffn_act_fn"), "name")
      : "swiglu",
    bias: false,
    tied: c.flag("tie_word_embeddings", false),
    experts: { count: ffn.count("moe_num_experts"), active: ffn.count("moe_top_k") },
  };
}
