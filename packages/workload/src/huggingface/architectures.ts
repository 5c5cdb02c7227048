/** Architectures by the names that config.json files give them: their class, or their `model_type`. */
import type { ModelOptions } from "../define-model.ts";
import type { ConfigFields } from "./config-fields.ts";
import * as experts from "./expert-family.ts";
import * as gpt from "./gpt-family.ts";
import * as hybrid from "./hybrid-family.ts";
import * as llama from "./llama-family.ts";

/** Reads a file of one architecture. */
export type Reader = (c: ConfigFields) => ModelOptions;

const byType: Readonly<Record<string, Reader>> = {
  llama: (c) => llama.llama(c),
  mistral: llama.mistral,
  mixtral: experts.mixtral,
  qwen2: llama.qwen2,
  qwen2_moe: experts.qwen2Moe,
  qwen3: llama.qwen3,
  qwen3_moe: experts.qwen3Moe,
  deepseek: experts.deepseek,
  deepseek_v2: experts.deepseekV2,
  deepseek_v3: experts.deepseekV3,
  kimi_k2: experts.deepseekV3,
  gpt2: gpt.gpt2,
  gptj: gpt.gptJ,
  gpt_neox: gpt.gptNeox,
  gemma: llama.gemma,
  gemma2: llama.gemma2,
  gemma3_text: llama.gemma3,
  phi: gpt.phi,
  phi3: llama.phi3,
  phimoe: experts.phiMoe,
  olmo: llama.olmo,
  olmo2: llama.olmo2,
  olmoe: experts.olmoe,
  falcon: gpt.falcon,
  bloom: gpt.bloom,
  opt: gpt.opt,
  gpt_oss: experts.gptOss,
  cohere: llama.cohere,
  starcoder2: llama.starcoder2,
  glm: llama.glm,
  glm4: llama.glm4,
  chatglm: llama.chatGlm,
  dbrx: experts.dbrx,
  bert: gpt.bert,
  llama4_text: experts.llama4,
  mamba2: hybrid.mamba2,
  nemotron_h: hybrid.nemotronH,
  qwen3_next: hybrid.qwen3Next,
  bamba: hybrid.bamba,
};

const byClass: Readonly<Record<string, string>> = {
  LlamaForCausalLM: "llama",
  MistralForCausalLM: "mistral",
  MixtralForCausalLM: "mixtral",
  Qwen2ForCausalLM: "qwen2",
  Qwen2MoeForCausalLM: "qwen2_moe",
  Qwen3ForCausalLM: "qwen3",
  Qwen3MoeForCausalLM: "qwen3_moe",
  DeepseekForCausalLM: "deepseek",
  DeepseekV2ForCausalLM: "deepseek_v2",
  DeepseekV3ForCausalLM: "deepseek_v3",
  GPT2LMHeadModel: "gpt2",
  GPTJForCausalLM: "gptj",
  GPTNeoXForCausalLM: "gpt_neox",
  GemmaForCausalLM: "gemma",
  Gemma2ForCausalLM: "gemma2",
  Gemma3ForCausalLM: "gemma3_text",
  PhiForCausalLM: "phi",
  Phi3ForCausalLM: "phi3",
  PhiMoEForCausalLM: "phimoe",
  PhimoeForCausalLM: "phimoe",
  OlmoForCausalLM: "olmo",
  Olmo2ForCausalLM: "olmo2",
  OlmoeForCausalLM: "olmoe",
  FalconForCausalLM: "falcon",
  RWForCausalLM: "falcon",
  BloomForCausalLM: "bloom",
  OPTForCausalLM: "opt",
  GptOssForCausalLM: "gpt_oss",
  CohereForCausalLM: "cohere",
  Starcoder2ForCausalLM: "starcoder2",
  GlmForCausalLM: "glm",
  Glm4ForCausalLM: "glm4",
  ChatGLMModel: "chatglm",
  ChatGLMForConditionalGeneration: "chatglm",
  DbrxForCausalLM: "dbrx",
  BertModel: "bert",
  BertForMaskedLM: "bert",
  BertForPreTraining: "bert",
  Llama4ForCausalLM: "llama4_text",
  Mamba2ForCausalLM: "mamba2",
  NemotronHForCausalLM: "nemotron_h",
  Qwen3NextForCausalLM: "qwen3_next",
  BambaForCausalLM: "bamba",
};

/** What a model would need to have for these. */
export const missing: Readonly<Record<string, string>> = {
  MambaForCausalLM: "state-space layers without heads (Mamba-1)",
  FalconMambaForCausalLM: "state-space layers without heads (Mamba-1)",
  JambaForCausalLM: "state-space layers without heads (Mamba-1)",
  FalconH1ForCausalLM: "attention and state-space heads side by side",
  Zamba2ForCausalLM: "layers that share their weights",
  RwkvForCausalLM: "linear attention",
  MiniMaxText01ForCausalLM: "linear attention",
  RecurrentGemmaForCausalLM: "recurrent layers",
  T5ForConditionalGeneration: "a decoder that attends to an encoder",
  MT5ForConditionalGeneration: "a decoder that attends to an encoder",
  BartForConditionalGeneration: "a decoder that attends to an encoder",
  WhisperForConditionalGeneration: "a decoder that attends to an encoder",
  Gemma3nForConditionalGeneration: "embeddings for each layer",
  Cohere2ForCausalLM: "layers without positions between those with a window",
  DeepseekV32ForCausalLM: "attention to chosen tokens",
};

/** Class names and model types that are read. */
export const readable: readonly string[] = [...Object.keys(byClass), ...Object.keys(byType)];

/** The reader of an architecture by either name. */
export function readerOf(name: string): Reader | undefined {
  const type = Object.hasOwn(byClass, name) ? byClass[name]! : name;
  return Object.hasOwn(byType, type) ? byType[type] : undefined;
}
