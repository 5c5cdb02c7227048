import { expect, test } from "vitest";
import { type AdapterTarget, defineModel, model, modelNames, parameters } from "@trireme/workload";

test("parameter counts equal the published totals to the digit", () => {
  // Checkpoints on the Hugging Face hub, as counted by their own tensors.
  const published: Record<string, number> = {
    gpt2: 124_439_808,
    "gpt2-medium": 354_823_168,
    "gpt2-large": 774_030_080,
    "gpt2-xl": 1_557_611_200,
    "gpt-j-6b": 6_050_882_784,
    "gpt-neox-20b": 20_554_567_680,
    "pythia-160m": 162_322_944,
    "pythia-1b": 1_011_781_632,
    "pythia-1.4b": 1_414_647_808,
    "pythia-2.8b": 2_775_208_960,
    "pythia-6.9b": 6_857_302_016,
    "pythia-12b": 11_846_072_320,
    "opt-125m": 125_239_296,
    "opt-1.3b": 1_315_758_080,
    "opt-2.7b": 2_651_596_800,
    "opt-6.7b": 6_658_473_984,
    "opt-13b": 12_853_473_280,
    "opt-30b": 29_974_540_288,
    "bloom-560m": 559_214_592,
    "bloom-7b1": 7_069_016_064,
    bloom: 176_247_271_424,
    "falcon-7b": 6_921_720_704,
    "falcon-40b": 41_303_293_952,
    "falcon-180b": 179_522_565_120,
    "phi-1.5": 1_418_270_720,
    "phi-2": 2_779_683_840,
    "bert-base": 109_482_240,
    "bert-large": 335_141_888,
    "llama-7b": 6_738_415_616,
    "llama-13b": 13_015_864_320,
    "llama-30b": 32_528_943_616,
    "llama-65b": 65_285_660_672,
    "llama2-7b": 6_738_415_616,
    "llama2-13b": 13_015_864_320,
    "llama2-70b": 68_976_648_192,
    "llama3-8b": 8_030_261_248,
    "llama3-70b": 70_553_706_496,
    "llama3-405b": 405_853_388_800,
    "llama3.2-1b": 1_235_814_400,
    "llama3.2-3b": 3_212_749_824,
    "mistral-7b": 7_241_732_096,
    "mistral-nemo-12b": 12_247_782_400,
    "mistral-large-123b": 122_610_069_504,
    "yi-6b": 6_061_035_520,
    "yi-34b": 34_388_917_248,
    "qwen2-0.5b": 494_032_768,
    "qwen2-1.5b": 1_543_714_304,
    "qwen2-7b": 7_615_616_512,
    "qwen2-72b": 72_706_203_648,
    "qwen2.5-14b": 14_770_033_664,
    "qwen2.5-32b": 32_763_876_352,
    "qwen3-0.6b": 596_049_920,
    "qwen3-1.7b": 1_720_574_976,
    "qwen3-4b": 4_022_468_096,
    "qwen3-8b": 8_190_735_360,
    "qwen3-14b": 14_768_307_200,
    "qwen3-32b": 32_762_123_264,
    "gemma-2b": 2_506_172_416,
    "gemma-7b": 8_537_680_896,
    "gemma2-2b": 2_614_341_888,
    "gemma2-9b": 9_241_705_984,
    "gemma2-27b": 27_227_128_320,
    "gemma3-1b": 999_885_952,
    "olmo-7b": 6_888_095_744,
    "olmo2-7b": 7_298_617_344,
    "olmo2-13b": 13_716_198_400,
    "tinyllama-1.1b": 1_100_048_384,
    "phi-3-mini": 3_821_079_552,
    "phi-4": 14_659_507_200,
    "glm4-9b": 9_399_951_360,
    "starcoder2-15b": 15_957_889_024,
    "command-r-35b": 34_980_831_232,
    "mixtral-8x7b": 46_702_792_704,
    "deepseek-moe-16b": 16_375_728_128,
    "deepseek-v2-lite": 15_706_484_224,
    "deepseek-v2": 235_741_434_880,
    "deepseek-v3": 671_026_419_200,
    // The paper rounds it to 1.04T.
    "kimi-k2": 1_026_408_232_448,
    "qwen1.5-moe-a2.7b": 14_315_784_192,
    "qwen3-30b-a3b": 30_532_122_624,
    "qwen3-235b-a22b": 235_093_634_560,
    "phi-3.5-moe": 41_873_153_344,
    dbrx: 131_596_523_520,
    "olmoe-1b-7b": 6_919_161_856,
    "gpt-oss-20b": 20_914_757_184,
    "gpt-oss-120b": 116_829_156_672,
    "llava-1.5-7b": 7_063_427_072,
  };
  expect(Object.keys(published).length).toBeGreaterThanOrEqual(60);
  for (const [name, total] of Object.entries(published)) {
    expect({ name, total: parameters(model(name)).total }).toEqual({ name, total });
  }
});

test("parameter counts that are published in round numbers round to them", () => {
  // Billions as the papers print them, total and met by one token.
  const published: readonly (readonly [string, number, number | undefined, number])[] = [
    ["mixtral-8x7b", 46.7, 12.9, 1],
    ["mixtral-8x22b", 141, 39, 0],
    ["megascale-moe-352b", 352, undefined, 0],
    ["deepseek-v2", 236, 21, 0],
    ["deepseek-v3", 671, undefined, 0],
    ["qwen2-57b-a14b", 57, 14, 0],
    ["qwen3-235b-a22b", 235, 22, 0],
    ["dbrx", 132, 36, 0],
    ["grok-1", 316, undefined, 0],
    ["gpt-oss-120b", 116.8, undefined, 1],
    ["phi-3.5-moe", 41.9, 6.6, 1],
    ["opt-66b", 66, undefined, 0],
    ["opt-175b", 175, undefined, 0],
    ["gpt3-175b-openai", 175, undefined, 0],
  ];
  for (const [name, total, active, digits] of published) {
    const p = parameters(model(name));
    expect({ name, total: (p.total / 1e9).toFixed(digits) }).toEqual({
      name,
      total: total.toFixed(digits),
    });
    if (active === undefined) continue;
    expect({ name, active: (p.active / 1e9).toFixed(digits) }).toEqual({
      name,
      active: active.toFixed(digits),
    });
  }
  // "37B activated": one token does not look its own input embedding's other rows up.
  const v3 = model("deepseek-v3");
  expect((parameters(v3).active - v3.vocab * v3.hidden) / 1e9).toBeCloseTo(36.6, 1);
});

test("GPT form follows the formula of SC'21", () => {
  // P = 12Lh²(1 + 13/(12h) + (V+s)/(12Lh)), which leaves out the final norm's 2h.
  for (const name of ["gpt2-xl", "gpt3-175b", "gpt3-175b-openai", "gpt-530b"]) {
    const { layers: l, hidden: h, vocab, context } = model(name);
    const formula = 12 * l * h * h + 13 * l * h + (vocab + context) * h;
    expect({ name, total: parameters(model(name)).total }).toEqual({
      name,
      total: formula + 2 * h,
    });
  }
});

test("the table of SC'21 has its parameter column", () => {
  // Table 1: layers, hidden, heads, billions as printed to one decimal.
  const rows: readonly (readonly [number, number, number, number])[] = [
    [24, 2304, 24, 1.7],
    [30, 3072, 32, 3.6],
    [36, 4096, 32, 7.5],
    [40, 6144, 48, 18.4],
    [48, 8192, 64, 39.1],
    [60, 10_240, 80, 76.1],
    [80, 12_288, 96, 145.6],
    [96, 16_384, 128, 310.1],
    [105, 20_480, 128, 529.6],
    [128, 25_600, 160, 1008.0],
  ];
  for (const [layers, hidden, heads, billions] of rows) {
    const { total } = parameters(defineModel({ layers, hidden, heads, vocab: 51_200 }));
    expect(total / 1e9).toBeGreaterThan(billions - 0.051);
    expect(total / 1e9).toBeLessThan(billions + 0.051);
  }
});

test("the parts sum to the total, for every preset", () => {
  for (const name of modelNames) {
    const m = model(name);
    const p = parameters(m);
    expect(p.total).toBe(
      p.embedding + p.layers + p.prediction + p.final + p.head + p.encoders + p.adapters,
    );
    expect(p.active).toBeLessThanOrEqual(p.total);
    expect(m.source).not.toBe("");
    expect(m.name).toBe(name);
  }
});

test("adapters of MLPerf's llama2_70b_lora have 44.6 million parameters, PEFT's of the same matrices 65.5", () => {
  const of = (targets: readonly AdapterTarget[]): number => {
    const p = parameters(defineModel({ ...model("llama2-70b"), adapter: { rank: 16, targets } }));
    expect(p.trainable).toBe(p.adapters);
    return p.adapters;
  };
  // One adapter for queries, keys and values (Megatron-LM's linear_qkv), or one for each.
  expect(of(["qkv", "output"])).toBe(44_564_480);
  expect(of(["query", "key", "value", "output"])).toBe(65_536_000);
  const first = of(["gate-up"]);
  expect(of(["gate", "up"]) - first).toBe(80 * 16 * 8192);
});

test("adapters of latent attention are beside each of its matrices", () => {
  const m = defineModel({
    ...model("deepseek-v3"),
    prediction: 0,
    adapter: { rank: 8, targets: ["query-down", "query-up", "key-value-down", "key-value-up"] },
  });
  const features = 7168 + 1536 + (1536 + 128 * 192) + (7168 + 576) + (512 + 128 * 256);
  expect(parameters(m).adapters).toBe(61 * 8 * features);
});

test("a shape alone is a model of GPT form", () => {
  expect(defineModel({ layers: 2, hidden: 64, heads: 4, vocab: 100 })).toMatchObject({
    kvHeads: 4,
    headDim: 16,
    ffn: 256,
    position: "learned",
    norm: "layernorm",
    activation: "gelu",
    bias: true,
    tied: true,
  });
});

test("impossible shapes are refused with the nearest legal choice", () => {
  const base = { layers: 2, hidden: 64, heads: 4, vocab: 100 };
  expect(() => defineModel({ ...base, heads: 7 })).toThrow(
    "hidden 64 is not a multiple of heads 7; use heads 8",
  );
  expect(() => defineModel({ ...base, kvHeads: 3 })).toThrow(
    "heads 4 is not a multiple of kvHeads 3; use kvHeads 2",
  );
  expect(() => defineModel({ ...base, layers: 0 })).toThrow("layers 0 must be a whole number");
  expect(() => defineModel({ ...base, ffn: 1.5 })).toThrow("ffn 1.5");
  expect(() => defineModel({ ...base, heads: 0 })).toThrow("heads 0");
  expect(() => model("lama3-8b")).toThrow('unknown model "lama3-8b"; did you mean "llama3-8b"?');
  expect(() => model("toString")).toThrow("unknown model");
});
