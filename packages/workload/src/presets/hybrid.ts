/** Models of state-space layers, of gated delta nets, and of these between layers with attention. */
import type { ModelOptions } from "../define-model.ts";
import { card, llama } from "./family.ts";

/** Mamba-2 alone: tied, its vocabulary padded to 50,288; what no layer has has no meaning. */
function mamba2(layers: number, hidden: number): ModelOptions {
  const heads = (2 * hidden) / 64;
  return {
    layers,
    hidden,
    heads,
    headDim: 64,
    ffn: hidden,
    vocab: 50_288,
    context: 2048,
    position: "none",
    norm: "rmsnorm",
    activation: "swiglu",
    bias: false,
    pattern: "M",
    mamba: { heads, headDim: 64, stateDim: 128 },
    source: card(`state-spaces/mamba2-${mamba2Names[hidden]}`),
  };
}

const mamba2Names: Readonly<Record<number, string>> = {
  768: "130m",
  1024: "370m",
  1536: "780m",
  2048: "1.3b",
  2560: "2.7b",
};

/** Nemotron-H: one mixer or block a layer, no positions, squared ReLU. */
const nemotronH = {
  headDim: 128,
  kvHeads: 8,
  vocab: 131_072,
  context: 8192,
  position: "none",
  norm: "rmsnorm",
  activation: "squared-relu",
  bias: false,
  tied: false,
} as const;
const states = { headDim: 64, groups: 8, chunk: 128 };

/** Shapes by name. */
export const hybridShapes: Readonly<Record<string, ModelOptions>> = {
  "mamba2-130m": mamba2(24, 768),
  "mamba2-370m": mamba2(48, 1024),
  "mamba2-780m": mamba2(48, 1536),
  "mamba2-1.3b": mamba2(48, 2048),
  "mamba2-2.7b": mamba2(64, 2560),
  "nemotron-h-8b": {
    ...nemotronH,
    layers: 52,
    hidden: 4096,
    heads: 32,
    ffn: 21_504,
    pattern: "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-",
    mamba: { heads: 128, stateDim: 128, ...states },
    source: "Nemotron-H (arXiv 2504.03624), Table 1; config.json of nvidia/Nemotron-H-8B-Base-8K",
  },
  "nemotron-h-47b": {
    ...nemotronH,
    layers: 98,
    hidden: 8192,
    heads: 64,
    ffn: 30_720,
    pattern:
      "M-M-M-M-M-M-M-M-M*-M-M-M-M-M-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-M-M---MM---M-M*-M-M-M-M-M-",
    mamba: { heads: 256, stateDim: 256, ...states },
    source: "config.json of nvidia/Nemotron-H-47B-Base-8K on Hugging Face",
  },
  "nemotron-h-56b": {
    ...nemotronH,
    layers: 118,
    hidden: 8192,
    heads: 64,
    ffn: 32_768,
    pattern:
      "M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-",
    mamba: { heads: 256, stateDim: 256, ...states },
    source: "Nemotron-H (arXiv 2504.03624), Table 1; config.json of nvidia/Nemotron-H-56B-Base-8K",
  },
  "nemotron3-nano-30b-a3b": {
    ...nemotronH,
    layers: 52,
    hidden: 2688,
    heads: 32,
    kvHeads: 2,
    ffn: 1856,
    pattern: "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
    mamba: { heads: 64, stateDim: 128, ...states },
    experts: { count: 128, active: 6, ffn: 1856, sharedFfn: 3712, selectionBias: true },
    source: card("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"),
  },
  "bamba-9b": llama({
    layers: 32,
    hidden: 4096,
    heads: 32,
    kvHeads: 8,
    ffn: 14_336,
    vocab: 128_256,
    context: 4096,
    rotaryFraction: 0.5,
    pattern:
      "M- M- M- M- M- M- M- M- M- *- M- M- M- M- M- M- M- M- *- M- M- M- M- M- M- M- M- *- M- M- M- M-",
    mamba: { heads: 128, headDim: 64, stateDim: 128 },
    source: card("ibm-ai-platform/Bamba-9B"),
  }),
  "qwen3-next-80b-a3b": llama({
    layers: 48,
    hidden: 2048,
    heads: 16,
    kvHeads: 2,
    headDim: 256,
    ffn: 5120,
    vocab: 151_936,
    context: 262_144,
    rotaryBase: 10_000_000,
    rotaryFraction: 0.25,
    normEpsilon: 1e-6,
    qkNorm: "head",
    attentionGate: true,
    pattern: "GE GE GE *E",
    deltaNet: { keyHeads: 16, valueHeads: 32, keyDim: 128, valueDim: 128 },
    experts: { count: 512, active: 10, ffn: 512, sharedFfn: 512, sharedGate: true },
    source: card("Qwen/Qwen3-Next-80B-A3B-Instruct"),
  }),
};
