/** Configurations of hybrids as Hugging Face writes them: what they become, and what has no counterpart. */
import { expect, test } from "vitest";
import { layerForms, model, modelFromHuggingFace } from "@trireme/workload";

test("files of hybrids are refused in one line where a model has no counterpart", () => {
  const nano = {
    architectures: ["NemotronHForCausalLM"],
    hybrid_override_pattern: "ME",
    num_hidden_layers: 2,
  };
  expect(() => modelFromHuggingFace({ ...nano, num_hidden_layers: 3 })).toThrow(
    'hybrid_override_pattern "ME" must name 3 layers, each M, *, - or E',
  );
  expect(() => modelFromHuggingFace({ ...nano, moe_latent_size: 64 })).toThrow(
    "moe_latent_size 64: a model has no experts behind a narrower projection",
  );
  expect(() =>
    modelFromHuggingFace({
      ...nano,
      num_nextn_predict_layers: 2,
      mtp_hybrid_override_pattern: "*EM",
    }),
  ).toThrow('mtp_hybrid_override_pattern "*EM" must be one mixer, one block, or both');
  expect(() => modelFromHuggingFace({ ...nano, use_bias: true })).toThrow("use_bias true");
});

test("transformers' Mamba-2 file gives the preset of its authors", () => {
  const read = modelFromHuggingFace({
    architectures: ["Mamba2ForCausalLM"],
    num_hidden_layers: 64,
    hidden_size: 2560,
    num_heads: 80,
    head_dim: 64,
    state_size: 128,
    n_groups: 1,
    expand: 2,
    conv_kernel: 4,
    chunk_size: 256,
    vocab_size: 50_288,
    layer_norm_epsilon: 1e-5,
    hidden_act: "silu",
    use_bias: false,
    use_conv_bias: true,
    tie_word_embeddings: true,
  });
  const { name: _, source: __, ...shape } = read;
  expect(model("mamba2-2.7b")).toMatchObject(shape);
});

test("words of a file name layers as its letters do", () => {
  const fields = {
    architectures: ["NemotronHForCausalLM"],
    num_hidden_layers: 4,
    hidden_size: 64,
    num_attention_heads: 4,
    num_key_value_heads: 2,
    intermediate_size: 96,
    vocab_size: 100,
    max_position_embeddings: 64,
    mlp_hidden_act: "relu2",
    mamba_num_heads: 8,
    mamba_head_dim: 16,
    ssm_state_size: 8,
    n_groups: 2,
    n_routed_experts: 4,
    num_experts_per_tok: 2,
    moe_intermediate_size: 32,
    moe_shared_expert_intermediate_size: 48,
  };
  const letters = modelFromHuggingFace({
    ...fields,
    hybrid_override_pattern: "M*-E",
    num_nextn_predict_layers: 2,
    mtp_hybrid_override_pattern: "*E",
  });
  expect(letters).toMatchObject({ pattern: "M*-E/*E", prediction: 2, position: "none" });
  expect(layerForms(letters).at(-1)).toEqual({
    mixer: "attention",
    windowed: false,
    dense: false,
    experts: true,
  });
  const { prediction: _, pattern: __, ...same } = letters;
  expect(
    modelFromHuggingFace({ ...fields, layers_block_type: ["mamba", "attention", "mlp", "moe"] }),
  ).toMatchObject({ ...same, pattern: "M*-E" });
});
