/** Published models by name, with where each shape is printed. */
import { TriremeError, nearestName } from "@trireme/core";
import { type ModelOptions, defineModel } from "../define-model.ts";
import type { Model } from "../model.ts";
import { expertShapes } from "./experts.ts";
import { gptShapes } from "./gpt.ts";
import { hybridShapes } from "./hybrid.ts";
import { llamaShapes } from "./llama.ts";
import { multimodalShapes } from "./multimodal.ts";

const shapes: Readonly<Record<string, ModelOptions>> = {
  ...gptShapes,
  ...llamaShapes,
  ...expertShapes,
  ...multimodalShapes,
  ...hybridShapes,
};

/** Names that `model` knows, in the order of the catalogue. */
export const modelNames: readonly string[] = Object.keys(shapes);

/**
 * A published model by name: `gpt2`, `llama3-8b`, `deepseek-v3`, … `gpt3-175b` is MegaScale's form of
 * GPT-3 (128 heads, vocabulary 64,000), `gpt3-175b-openai` the original (96 heads, 50,257).
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
