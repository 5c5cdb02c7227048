/** State-space models, delta nets, and hybrids of these with attention: the readers of their config.json files. */
import type { ModelOptions } from "../define-model.ts";
import { plainActivation } from "./activation.ts";
import { type ConfigFields, print } from "./config-fields.ts";
import { sparseLayers } from "./layer-pattern.ts";
import { llama, qwen3 } from "./llama-family.ts";

/**
 * Mamba-2 in transformers' own form: state-space layers alone. What only attention or a feed-forward block has, no
 * layer has.
 */
export function mamba2(c: ConfigFields): ModelOptions {
  c.only("hidden_act", "silu", "another activation in state-space layers");
  const hidden = c.count("hidden_size");
  const heads = c.count("num_heads");
  return {
    layers: c.count("num_hidden_layers"),
    hidden,
    heads,
    headDim: c.count("head_dim"),
    ffn: hidden,
    vocab: c.count("vocab_size"),
    context: c.maybeCount("max_position_embeddings") ?? 2048,
    position: "none",
    norm: "rmsnorm",
    normEpsilon: c.number("layer_norm_epsilon", 1e-5),
    activation: "swiglu",
    bias: c.flag("use_bias", false),
    tied: c.flag("tie_word_embeddings", false),
    pattern: "M",
    mamba: {
      heads,
      headDim: c.count("head_dim"),
      stateDim: c.count("state_size"),
      groups: c.maybeCount("n_groups") ?? 8,
      convolution: c.maybeCount("conv_kernel") ?? 4,
      convolutionBias: c.flag("use_conv_bias", true),
      chunk: c.maybeCount("chunk_size") ?? 256,
    },
  };
}

/** Nemotron-H and Nemotron 3: one mixer or block a layer, no positions. */
export function nemotronH(c: ConfigFields): ModelOptions {
  for (const name of ["use_bias", "mamba_proj_bias", "mlp_bias", "attention_bias"]) {
    c.only(name, false, "biases of some layers alone");
  }
  c.only("mamba_hidden_act", "silu", "another activation in state-space layers");
  const layers = c.count("num_hidden_layers");
  const pattern = nemotronPattern(c, layers);
  const modules = c.natural("num_nextn_predict_layers", 0);
  const module = modules === 0 ? "" : `/${nemotronModule(c)}`;
  const mixed = pattern.includes("E") || module.includes("E");
  if (mixed && c.value("moe_latent_size") !== undefined) {
    return c.fail(
      `moe_latent_size ${print(c.value("moe_latent_size"))}: a model has no experts behind a narrower projection`,
    );
  }
  const headDim = c.maybeCount("head_dim", "attention_head_dim");
  return {
    layers,
    hidden: c.count("hidden_size"),
    heads: c.count("num_attention_heads"),
    kvHeads: c.count("num_key_value_heads"),
    ...(headDim === undefined ? {} : { headDim }),
    ffn: c.count("intermediate_size"),
    vocab: c.count("vocab_size"),
    context: c.count("max_position_embeddings"),
    position: "none",
    norm: "rmsnorm",
    normEpsilon: c.number("layer_norm_epsilon", 1e-5),
    activation: plainActivation(c, "mlp_hidden_act"),
    bias: false,
    tied: c.flag("tie_word_embeddings", false),
    prediction: modules,
    pattern: `${pattern}${module}`,
    mamba: {
      heads: c.count("mamba_num_heads"),
      headDim: c.count("mamba_head_dim"),
      stateDim: c.count("ssm_state_size"),
      groups: c.count("n_groups"),
      convolution: c.maybeCount("conv_kernel") ?? 4,
      convolutionBias: c.flag("use_conv_bias", true),
      chunk: c.maybeCount("chunk_size") ?? 256,
    },
    ...(mixed
      ? {
          experts: {
            count: c.count("n_routed_experts"),
            active: c.count("num_experts_per_tok"),
            ffn: c.count("moe_intermediate_size"),
            sharedFfn: c.natural("n_shared_experts", 1) * sharedWidth(c),
            selectionBias: true,
          },
        }
      : {}),
  };
}

function sharedWidth(c: ConfigFields): number {
  return c.natural("moe_shared_expert_intermediate_size", c.count("moe_intermediate_size"));
}

const letters: Readonly<Record<string, string>> = {
  mamba: "M",
  attention: "*",
  mlp: "-",
  moe: "E",
};

/** The letters of a file, or of its list of words (Nemotron 3.5). */
function nemotronPattern(c: ConfigFields, layers: number): string {
  const text = c.value("hybrid_override_pattern");
  const listed = c.value("layers_block_type") ?? text;
  const names: readonly unknown[] = Array.isArray(listed) ? listed : [];
  const pattern = Array.isArray(listed)
    ? names.map((n) => (typeof n === "string" ? (letters[n] ?? "?") : "?")).join("")
    : text;
  if (typeof pattern !== "string" || pattern.length !== layers || /[^M*E-]/.test(pattern)) {
    return c.fail(
      `hybrid_override_pattern ${print(listed)} must name ${layers} layers, each M, *, - or E`,
    );
  }
  return pattern;
}

/** A prediction module of attention and experts is one layer here. */
function nemotronModule(c: ConfigFields): string {
  const pattern = c.value("mtp_hybrid_override_pattern");
  if (typeof pattern === "string" && /^[M*]?[E-]?$/.test(pattern) && pattern !== "") return pattern;
  return c.fail(
    `mtp_hybrid_override_pattern ${print(pattern)} must be one mixer, one block, or both in this order`,
  );
}

/** Gated delta nets with attention in every fourth layer, experts in each. */
export function qwen3Next(c: ConfigFields): ModelOptions {
  c.only("hidden_act", "silu", "another activation");
  const layers = c.count("num_hidden_layers");
  const { denseLayers, every } = sparseLayers(c);
  if ((denseLayers ?? 0) > 0 || (every ?? 1) > 1) {
    return c.fail("mlp_only_layers and decoder_sparse_step: only experts in every layer are read");
  }
  return {
    ...qwen3(c),
    rotaryFraction: c.number("partial_rotary_factor", 0.25),
    attentionGate: true,
    pattern: intervals(c, layers),
    deltaNet: {
      keyHeads: c.count("linear_num_key_heads"),
      valueHeads: c.count("linear_num_value_heads"),
      keyDim: c.count("linear_key_head_dim"),
      valueDim: c.count("linear_value_head_dim"),
      convolution: c.maybeCount("linear_conv_kernel_dim") ?? 4,
    },
    experts: {
      count: c.count("num_experts"),
      active: c.count("num_experts_per_tok"),
      ffn: c.count("moe_intermediate_size"),
      sharedFfn: c.count("shared_expert_intermediate_size"),
      sharedGate: true,
    },
  };
}

function intervals(c: ConfigFields, layers: number): string {
  const listed = c.value("layer_types");
  const every = c.maybeCount("full_attention_interval") ?? 4;
  const names: readonly unknown[] = Array.isArray(listed)
    ? listed
    : Array.from({ length: layers }, (_, i) =>
        (i + 1) % every === 0 ? "full_attention" : "linear_attention",
      );
  const other = names.find((n) => n !== "full_attention" && n !== "linear_attention");
  if (other !== undefined || names.length !== layers) {
    return c.fail(
      `layer_types ${print(listed)} must name ${layers} layers, each linear_attention or full_attention`,
    );
  }
  return shortest(names.map((n) => (n === "full_attention" ? "*E" : "GE")));
}

/** Layers as a pattern that repeats as often as it can. */
function shortest(layers: readonly string[]): string {
  const period = layers.findIndex(
    (_, i) => i > 0 && layers.length % i === 0 && layers.every((word, j) => word === layers[j % i]),
  );
  return layers.slice(0, period < 0 ? layers.length : period).join(" ");
}

/** State-space layers with attention in some, a gated block behind each. */
export function bamba(c: ConfigFields): ModelOptions {
  c.only("mamba_proj_bias", false, "biases of some layers alone");
  const shape = llama(c);
  const indices = c.value("attn_layer_indices") ?? [];
  const attention: readonly unknown[] = Array.isArray(indices) ? indices : [];
  const outside = attention.find((i) => typeof i !== "number" || i < 0 || i >= shape.layers);
  if (!Array.isArray(indices) || outside !== undefined) {
    return c.fail(
      `attn_layer_indices ${print(indices)} must be layers from 0 to ${shape.layers - 1}`,
    );
  }
  return {
    ...shape,
    rotaryFraction: c.number("partial_rotary_factor", 0.5),
    pattern: shortest(
      Array.from({ length: shape.layers }, (_, i) => (attention.includes(i) ? "*-" : "M-")),
    ),
    mamba: {
      heads: c.count("mamba_n_heads"),
      headDim: c.count("mamba_d_head"),
      stateDim: c.count("mamba_d_state"),
      groups: c.maybeCount("mamba_n_groups") ?? 1,
      convolution: c.maybeCount("mamba_d_conv") ?? 4,
      convolutionBias: c.flag("mamba_conv_bias", true),
      chunk: c.maybeCount("mamba_chunk_size") ?? 256,
    },
  };
}
