import { readFileSync } from "node:fs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { TriremeError } from "@trireme/core";
import { type Model, layerForms, model, modelFromHuggingFace, parameters } from "@trireme/workload";

interface Published {
  readonly preset: string;
  readonly config: Readonly<Record<string, unknown>>;
}

/** Preset, and what its repository's file says. */
const configs = readFileSync(new URL("vectors/huggingface-configs.jsonl", import.meta.url), "utf8")
  .trimEnd()
  .split("\n")
  .map((line) => JSON.parse(line) as Published)
  .map(({ preset, config: published }) => [preset, published] as const);

const config = (preset: string): Published["config"] =>
  configs.find(([name]) => name === preset)![1];

/** What a file and a preset may say differently: published context lengths are several, and eps and bases no matter of cost. */
const free = new Set([
  "name",
  "source",
  "context",
  "rotaryBase",
  "rotaryFraction",
  "normEpsilon",
  "window",
  "prediction",
]);

function shape(m: Model): object {
  return Object.fromEntries(Object.entries(m).filter(([key]) => !free.has(key)));
}

test.each(configs)(
  "the config.json of %s gives the preset's shape and exact parameters",
  (name, c) => {
    const read = modelFromHuggingFace(c);
    const preset = model(name);
    const { total, prediction } = parameters(read);
    expect(total - prediction).toBe(parameters(preset).total);
    // Mistral-form files state an inner width that models without dense layers do not use.
    expect(shape(read)).toEqual(shape(preset));
  },
);

test("windows are those of the files", () => {
  const windows = (name: string): unknown => modelFromHuggingFace(config(name)).window;
  expect(windows("mistral-7b")).toEqual({ size: 4096, every: 0 });
  expect(windows("gemma2-9b")).toEqual({ size: 4096, every: 2 });
  expect(windows("gemma3-1b")).toEqual({ size: 512, every: 6 });
  expect(windows("gpt-oss-20b")).toEqual({ size: 128, every: 2 });
  expect(windows("qwen2-7b")).toBeUndefined();
  expect(windows("mistral-nemo-12b")).toBeUndefined();
});

test("DeepSeek-V3's file has its prediction module, of 11.5 billion parameters beside shared tables", () => {
  const m = modelFromHuggingFace(config("deepseek-v3"));
  const { prediction, total } = parameters(m);
  // The repository's tensors have 684,489,845,504 numbers beside scales: the module has copies of
  // embedding and head there. "671B of the main model weights and 14B of the module", says its README.
  expect(total + 2 * m.vocab * m.hidden).toBe(684_489_845_504);
  expect(prediction).toBe(11_610_068_224);
});

test("tied embeddings are each architecture's default where the file is silent", () => {
  const silent = (name: string): boolean => {
    const { tie_word_embeddings: _, ...rest } = config(name);
    return modelFromHuggingFace(rest).tied;
  };
  for (const name of [
    "gpt2",
    "gemma-2b",
    "gemma2-9b",
    "gemma3-1b",
    "falcon-7b",
    "bloom",
    "opt-6.7b",
    "command-r-35b",
    "bert-base",
  ]) {
    expect({ name, tied: silent(name) }).toEqual({ name, tied: true });
  }
  for (const name of [
    "llama3-8b",
    "mistral-7b",
    "mixtral-8x7b",
    "qwen2-7b",
    "qwen3-4b",
    "deepseek-v3",
    "gpt-neox-20b",
    "gpt-j-6b",
    "phi-2",
    "phi-4",
    "olmo-7b",
    "olmo2-7b",
    "dbrx",
    "glm4-9b",
    "llama4-scout",
  ]) {
    expect({ name, tied: silent(name) }).toEqual({ name, tied: false });
  }
});

test("a name is the caller's, or the repository's, or the architecture's", () => {
  const gpt = config("gpt2");
  expect(modelFromHuggingFace(gpt).name).toBe("GPT2LMHeadModel");
  expect(modelFromHuggingFace({ ...gpt, _name_or_path: "openai-community/gpt2" })).toMatchObject({
    name: "openai-community/gpt2",
    source: "config.json of openai-community/gpt2",
  });
  expect(modelFromHuggingFace(gpt, { name: "mine" }).name).toBe("mine");
});

test("dense layers, steps and listed layers are read", () => {
  const moe = modelFromHuggingFace({
    ...config("qwen3-30b-a3b"),
    mlp_only_layers: [0, 1],
    decoder_sparse_step: 2,
  });
  expect(moe.experts).toMatchObject({ denseLayers: 2, every: 2 });
  expect(layerForms(moe)).toHaveLength(2);
  const all = { ...config("qwen3-4b"), use_sliding_window: true, sliding_window: 64 };
  expect(modelFromHuggingFace({ ...all, max_window_layers: 0 }).window).toEqual({
    size: 64,
    every: 0,
  });
  expect(modelFromHuggingFace({ ...all, max_window_layers: 36 }).window).toBeUndefined();
  const listed = (every: number): unknown =>
    modelFromHuggingFace({
      ...config("gemma3-1b"),
      layer_types: Array.from({ length: 26 }, (_, i) =>
        (i + 1) % every === 0 ? "full_attention" : "sliding_attention",
      ),
    }).window;
  expect(listed(1)).toBeUndefined();
  expect(listed(3)).toEqual({ size: 512, every: 3 });
  expect(listed(99)).toEqual({ size: 512, every: 0 });
});

test("the base of the angles may stand in a group", () => {
  const { rope_theta: _, ...rest } = config("llama3-8b");
  const read = modelFromHuggingFace({
    ...rest,
    rope_parameters: { rope_type: "default", rope_theta: 123 },
  });
  expect(read.rotaryBase).toBe(123);
});

const base = config("llama3-8b");
const refused: readonly (readonly [string, unknown, string])[] = [
  ["no object", [], "config.json must be an object, not []"],
  ["no name", {}, "config.json has neither architectures nor model_type"],
  [
    "state-space layers",
    { architectures: ["MambaForCausalLM"] },
    "architecture MambaForCausalLM is not read: a model has no state-space layers without heads (Mamba-1)",
  ],
  [
    "an encoder-decoder",
    { architectures: ["T5ForConditionalGeneration"], model_type: "t5" },
    "a decoder that attends to an encoder",
  ],
  [
    "a multimodal file",
    { architectures: ["Llama4ForConditionalGeneration"], model_type: "llama4", text_config: {} },
    "give its text_config",
  ],
  ["a slip", { architectures: ["LamaForCausalLM"] }, "did you mean LlamaForCausalLM?"],
  [
    "an unknown architecture",
    { model_type: "zzzzzzzzzzzz" },
    "architecture zzzzzzzzzzzz is not known; read are ",
  ],
  ["a missing size", { ...base, hidden_size: null }, "LlamaForCausalLM: hidden_size is missing"],
  [
    "a size as text",
    { ...base, hidden_size: "4096" },
    'hidden_size "4096" must be a whole number, 1 or more',
  ],
  ["an unknown activation", { ...base, hidden_act: "mish" }, 'hidden_act "mish" is not one of'],
  [
    "a plain activation for a gate",
    { ...config("gpt2"), activation_function: "silu" },
    'activation_function "silu" is not one of',
  ],
  [
    "tied embeddings as text",
    { ...base, tie_word_embeddings: "no" },
    'tie_word_embeddings "no" must be true or false',
  ],
  ["an epsilon of zero", { ...base, rms_norm_eps: 0 }, "rms_norm_eps 0 must be a number above 0"],
  [
    "heads that do not divide",
    { ...base, num_key_value_heads: 5 },
    "heads 32 is not a multiple of kvHeads 5",
  ],
  [
    "norms of queries",
    { ...config("command-r-35b"), use_qk_norm: true },
    "use_qk_norm true: norms of queries and keys",
  ],
  ["norms of queries in Phi", { ...config("phi-2"), qk_layernorm: true }, "qk_layernorm true"],
  [
    "OPT 350M's projections",
    { ...config("opt-6.7b"), word_embed_proj_dim: 512 },
    "word_embed_proj_dim 512: an embedding of another width",
  ],
  [
    "OPT's norms without weights",
    { ...config("opt-6.7b"), layer_norm_elementwise_affine: false },
    "layer_norm_elementwise_affine false",
  ],
  [
    "cross attention",
    { ...config("gpt2"), add_cross_attention: true },
    "add_cross_attention true: attention to an encoder",
  ],
  [
    "BLOOM's other residuals",
    { ...config("bloom"), apply_residual_connection_post_layernorm: true },
    "residuals of normalised inputs",
  ],
  [
    "BERT's relative positions",
    { ...config("bert-base"), position_embedding_type: "relative_key" },
    'position_embedding_type "relative_key"',
  ],
  ["BERT as a decoder", { ...config("bert-base"), is_decoder: true }, "is_decoder true"],
  [
    "another norm",
    { ...config("starcoder2-15b"), norm_type: "rms_norm" },
    'norm_type "rms_norm": another norm',
  ],
  ["another block", { ...config("starcoder2-15b"), mlp_type: "gated" }, 'mlp_type "gated"'],
  ["GLM with LayerNorm", { ...config("glm4-9b"), rmsnorm: false }, "rmsnorm false: LayerNorm"],
  [
    "GLM without a last norm",
    { ...config("glm4-9b"), post_layer_norm: false },
    "post_layer_norm false",
  ],
  ["dense layers in between", { ...config("deepseek-v3"), moe_layer_freq: 2 }, "moe_layer_freq 2"],
  [
    "another choice of experts",
    { ...config("deepseek-v2"), topk_method: "sinkhorn" },
    'topk_method "sinkhorn" is not one of',
  ],
  [
    "scattered dense layers",
    { ...config("qwen3-30b-a3b"), mlp_only_layers: [3] },
    "mlp_only_layers [3]",
  ],
  [
    "windows from some layer on",
    { ...config("qwen3-4b"), use_sliding_window: true, sliding_window: 64, max_window_layers: 9 },
    "max_window_layers 9",
  ],
  [
    "too few listed layers",
    { ...config("gpt-oss-20b"), layer_types: ["full_attention"] },
    "must list 24 layers",
  ],
  [
    "attention of another kind",
    {
      ...config("gpt-oss-20b"),
      layer_types: Array.from({ length: 24 }, () => "chunked_attention"),
    },
    'layer_types "chunked_attention" is not one of',
  ],
  [
    "an order without a period",
    {
      ...config("gpt-oss-20b"),
      layer_types: Array.from({ length: 24 }, (_, i) =>
        i === 0 ? "full_attention" : "sliding_attention",
      ),
    },
    "every n-th layer",
  ],
  ["no group", { ...config("dbrx"), ffn_config: 3 }, "ffn_config 3 must be an object"],
];

test.each(refused)("%s is refused with the value and the rule", (_, c, message) => {
  expect(() => modelFromHuggingFace(c)).toThrow(message);
  expect(() => modelFromHuggingFace(c)).toThrow(TriremeError);
});

test("a file with any field replaced gives a model or one line", () => {
  const odd = fc.oneof(
    fc.constantFrom(null, 0, -1, 1.5, 2 ** 60, "", "x", true, [], {}, Number.NaN),
    fc.string(),
    fc.integer(),
  );
  const mutated = fc
    .constantFrom(...configs.map(([, c]) => c))
    .chain((c) => fc.tuple(fc.constant(c), fc.constantFrom(...Object.keys(c)), odd));
  fc.assert(
    fc.property(mutated, ([c, key, value]) => {
      try {
        expect(parameters(modelFromHuggingFace({ ...c, [key]: value })).total).toBeGreaterThan(0);
      } catch (error) {
        if (!(error instanceof TriremeError)) throw error;
        expect(error.message).not.toContain("\n");
      }
    }),
    { numRuns: 1000 },
  );
});
