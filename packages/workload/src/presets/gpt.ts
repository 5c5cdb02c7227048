/** Models of GPT form, and those that leave it by a norm, a position or a parallel block. */
import type { ModelOptions } from "../define-model.ts";
import { card } from "./family.ts";

const gpt2 = { vocab: 50_257, context: 1024, source: "Radford et al. 2019, openai/gpt-2 hparams" };
const gpt3 = {
  vocab: 50_257,
  context: 2048,
  source: "Brown et al. 2020 (arXiv 2005.14165), Table 2.1",
};
const megaScale = { vocab: 64_000, context: 2048, source: "MegaScale (arXiv 2402.15627), Table 1" };
const sc21 = {
  vocab: 51_200,
  context: 2048,
  source: "Megatron-LM at SC'21 (arXiv 2104.04473), Table 1",
};

/** Parallel block, rotary quarter, untied (GPT-NeoX, arXiv 2204.06745; Pythia, arXiv 2304.01373). */
function neox(o: ModelOptions): ModelOptions {
  return {
    context: 2048,
    position: "rotary",
    rotaryFraction: 0.25,
    block: "parallel",
    sharedNorm: false,
    tied: false,
    ...o,
  };
}

const pythia = { vocab: 50_304, source: "Pythia (arXiv 2304.01373), Table 1" };
const opt = {
  vocab: 50_272,
  context: 2048,
  extraPositions: 2,
  activation: "relu" as const,
  source: "OPT (arXiv 2205.01068), Table 1",
};
const bloom = {
  vocab: 250_880,
  context: 2048,
  position: "alibi" as const,
  embeddingNorm: true,
  source: "BLOOM (arXiv 2211.05100), Table 3",
};

/** Parallel block of one norm, multi-query or grouped attention, no biases, tied (180B is not). */
function falcon(o: ModelOptions): ModelOptions {
  return {
    context: 2048,
    position: "rotary",
    block: "parallel",
    bias: false,
    source: "The Falcon series (arXiv 2311.16867), Table 13",
    ...o,
  };
}

const bert = {
  vocab: 30_522,
  context: 512,
  segments: 2,
  embeddingNorm: true,
  finalNorm: false,
  normPlacement: "post" as const,
  causal: false,
  pooler: true,
  normEpsilon: 1e-12,
  source: "BERT (arXiv 1810.04805), Section 3",
};

/** Shapes by name. */
export const gptShapes: Readonly<Record<string, ModelOptions>> = {
  gpt2: { layers: 12, hidden: 768, heads: 12, ...gpt2 },
  "gpt2-medium": { layers: 24, hidden: 1024, heads: 16, ...gpt2 },
  "gpt2-large": { layers: 36, hidden: 1280, heads: 20, ...gpt2 },
  "gpt2-xl": { layers: 48, hidden: 1600, heads: 25, ...gpt2 },
  "gpt3-175b": { layers: 96, hidden: 12_288, heads: 128, ...megaScale },
  "gpt3-175b-openai": { layers: 96, hidden: 12_288, heads: 96, ...gpt3 },
  "gpt3-13b-openai": { layers: 40, hidden: 5120, heads: 40, ...gpt3 },
  "gpt3-6.7b-openai": { layers: 32, hidden: 4096, heads: 32, ...gpt3 },
  "gpt-530b": { layers: 105, hidden: 20_480, heads: 160, ...megaScale },
  "gpt-1.7b-megatron": { layers: 24, hidden: 2304, heads: 24, ...sc21 },
  "gpt-18b-megatron": { layers: 40, hidden: 6144, heads: 48, ...sc21 },
  "gpt-145b-megatron": { layers: 80, hidden: 12_288, heads: 96, ...sc21 },
  "gpt-1t-megatron": { layers: 128, hidden: 25_600, heads: 160, ...sc21 },
  "gpt-j-6b": neox({
    layers: 28,
    hidden: 4096,
    heads: 16,
    vocab: 50_400,
    sharedNorm: true,
    qkvBias: false,
    outputBias: false,
    headBias: true,
    source: card("EleutherAI/gpt-j-6b"),
  }),
  "gpt-neox-20b": neox({
    layers: 44,
    hidden: 6144,
    heads: 64,
    vocab: 50_432,
    source: "GPT-NeoX-20B (arXiv 2204.06745), Section 2",
  }),
  "pythia-160m": neox({ layers: 12, hidden: 768, heads: 12, ...pythia }),
  "pythia-1b": neox({ layers: 16, hidden: 2048, heads: 8, ...pythia }),
  "pythia-1.4b": neox({ layers: 24, hidden: 2048, heads: 16, ...pythia }),
  "pythia-2.8b": neox({ layers: 32, hidden: 2560, heads: 32, ...pythia }),
  "pythia-6.9b": neox({ layers: 32, hidden: 4096, heads: 32, ...pythia, vocab: 50_432 }),
  "pythia-12b": neox({ layers: 36, hidden: 5120, heads: 40, ...pythia, vocab: 50_688 }),
  "opt-125m": { layers: 12, hidden: 768, heads: 12, ...opt },
  "opt-1.3b": { layers: 24, hidden: 2048, heads: 32, ...opt },
  "opt-2.7b": { layers: 32, hidden: 2560, heads: 32, ...opt },
  "opt-6.7b": { layers: 32, hidden: 4096, heads: 32, ...opt },
  "opt-13b": { layers: 40, hidden: 5120, heads: 40, ...opt },
  "opt-30b": { layers: 48, hidden: 7168, heads: 56, ...opt },
  "opt-66b": { layers: 64, hidden: 9216, heads: 72, ...opt },
  "opt-175b": { layers: 96, hidden: 12_288, heads: 96, ...opt },
  "bloom-560m": { layers: 24, hidden: 1024, heads: 16, ...bloom },
  "bloom-7b1": { layers: 30, hidden: 4096, heads: 32, ...bloom },
  bloom: { layers: 70, hidden: 14_336, heads: 112, ...bloom },
  "falcon-7b": falcon({ layers: 32, hidden: 4544, heads: 71, kvHeads: 1, vocab: 65_024 }),
  "falcon-40b": falcon({
    layers: 60,
    hidden: 8192,
    heads: 128,
    kvHeads: 8,
    sharedNorm: false,
    vocab: 65_024,
  }),
  "falcon-180b": falcon({
    layers: 80,
    hidden: 14_848,
    heads: 232,
    kvHeads: 8,
    sharedNorm: false,
    tied: false,
    vocab: 65_024,
  }),
  "phi-1.5": neox({
    layers: 24,
    hidden: 2048,
    heads: 32,
    vocab: 51_200,
    rotaryFraction: 0.5,
    sharedNorm: true,
    headBias: true,
    source: card("microsoft/phi-1_5"),
  }),
  "phi-2": neox({
    layers: 32,
    hidden: 2560,
    heads: 32,
    vocab: 51_200,
    rotaryFraction: 0.4,
    sharedNorm: true,
    headBias: true,
    source: card("microsoft/phi-2"),
  }),
  "bert-base": { layers: 12, hidden: 768, heads: 12, ...bert },
  "bert-large": { layers: 24, hidden: 1024, heads: 16, ...bert },
};
