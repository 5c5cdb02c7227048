/** Models with encoders of images or sounds. */
import type { ModelOptions } from "../define-model.ts";
import { llama } from "./family.ts";

/** Shapes by name. */
export const multimodalShapes: Readonly<Record<string, ModelOptions>> = {
  "llava-1.5-7b": llama({
    layers: 32,
    hidden: 4096,
    heads: 32,
    ffn: 11_008,
    vocab: 32_064,
    context: 4096,
    encoders: [
      {
        layers: 24,
        hidden: 1024,
        heads: 16,
        patch: 3 * 14 * 14,
        tokens: 576,
        positionRows: 577,
        embeddingNorm: true,
        projector: [4096],
        frozen: true,
      },
    ],
    source: "LLaVA-1.5 (arXiv 2310.03744), Section 3",
  }),
};
