/** Published models by name, with where each shape is printed. */
import { TriremeError, nearestName } from "@trireme/core";
import { type Model, type ModelOptions, defineModel } from "./model.ts";

const gpt2 = { vocab: 50_257, context: 1024, source: "Radford et al. 2019, openai/gpt-2 hparams" };
const gpt3 = {
  vocab: 50_257,
  context: 2048,
  source: "Brown et al. 2020 (arXiv 2005.14165), Table 2.1",
};
const megaScale = { vocab: 64_000, context: 2048, source: "MegaScale (arXiv 2402.15627), Table 1" };

function llama(o: ModelOptions): ModelOptions {
  return {
    position: "rotary",
    norm: "rmsnorm",
    activation: "swiglu",
    bias: false,
    tied: false,
    ...o,
  };
}

const llama1 = {
  normEpsilon: 1e-6,
  vocab: 32_000,
  context: 2048,
  source: "Touvron et al. 2023 (arXiv 2302.13971), Table 2",
};
const llama2 = { vocab: 32_000, context: 4096, source: "Touvron et al. 2023 (arXiv 2307.09288)" };
const llama3 = {
  rotaryBase: 500_000,
  vocab: 128_256,
  context: 8192,
  source: "The Llama 3 Herd of Models (arXiv 2407.21783), Table 3",
};

const shapes: Readonly<Record<string, ModelOptions>> = {
  gpt2: { layers: 12, hidden: 768, heads: 12, ...gpt2 },
  "gpt2-medium": { layers: 24, hidden: 1024, heads: 16, ...gpt2 },
  "gpt2-large": { layers: 36, hidden: 1280, heads: 20, ...gpt2 },
  "gpt2-xl": { layers: 48, hidden: 1600, heads: 25, ...gpt2 },
  "gpt3-175b": { layers: 96, hidden: 12_288, heads: 128, ...megaScale },
  "gpt3-175b-openai": { layers: 96, hidden: 12_288, heads: 96, ...gpt3 },
  "gpt3-13b-openai": { layers: 40, hidden: 5120, heads: 40, ...gpt3 },
  "gpt3-6.7b-openai": { layers: 32, hidden: 4096, heads: 32, ...gpt3 },
  "gpt-530b": { layers: 105, hidden: 20_480, heads: 160, ...megaScale },
  "llama-7b": llama({ layers: 32, hidden: 4096, heads: 32, ffn: 11_008, ...llama1 }),
  "llama-13b": llama({ layers: 40, hidden: 5120, heads: 40, ffn: 13_824, ...llama1 }),
  "llama-30b": llama({ layers: 60, hidden: 6656, heads: 52, ffn: 17_920, ...llama1 }),
  "llama-65b": llama({ layers: 80, hidden: 8192, heads: 64, ffn: 22_016, ...llama1 }),
  "llama2-7b": llama({ layers: 32, hidden: 4096, heads: 32, ffn: 11_008, ...llama2 }),
  "llama2-13b": llama({ layers: 40, hidden: 5120, heads: 40, ffn: 13_824, ...llama2 }),
  "llama2-70b": llama({ layers: 80, hidden: 8192, heads: 64, kvHeads: 8, ffn: 28_672, ...llama2 }),
  "llama3-8b": llama({ layers: 32, hidden: 4096, heads: 32, kvHeads: 8, ffn: 14_336, ...llama3 }),
  "llama3-70b": llama({ layers: 80, hidden: 8192, heads: 64, kvHeads: 8, ffn: 28_672, ...llama3 }),
  "llama3-405b": llama({
    layers: 126,
    hidden: 16_384,
    heads: 128,
    kvHeads: 8,
    ffn: 53_248,
    ...llama3,
  }),
};

/** Names that `model` knows, in the order of the catalogue. */
export const modelNames: readonly string[] = Object.keys(shapes);

/**
 * A published model by name: `gpt2`, `llama3-8b`, … `gpt3-175b` is MegaScale's form of GPT-3 (128
 * heads, vocabulary 64,000), `gpt3-175b-openai` the original (96 heads, 50,257).
 * Throws TriremeError "MODEL" with the nearest name for one that is not in the catalogue.
 */
export function model(name: string): Model {
  const shape = Object.hasOwn(shapes, name) ? shapes[name] : undefined;
  if (shape === undefined) {
    const near = nearestName(name, modelNames);
    throw new TriremeError(
      "MODEL",
      `unknown model "${name}"; ${near === undefined ? `known: ${modelNames.join(", ")}` : `did you mean "${near}"?`}`,
    );
  }
  return defineModel({ name, ...shape });
}
