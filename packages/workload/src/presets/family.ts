/** Forms that many published models share: what `defineModel` is told beside their sizes. */
import type { ModelOptions } from "../define-model.ts";

/** Llama form: rotary positions, RMSNorm, SwiGLU, no biases, untied. */
export function llama(o: ModelOptions): ModelOptions {
  return {
    position: "rotary",
    norm: "rmsnorm",
    activation: "swiglu",
    bias: false,
    tied: false,
    ...o,
  };
}

/** Where a shape is printed as a configuration file of the model's own repository on Hugging Face. */
export function card(repository: string): string {
  return `config.json of ${repository} on Hugging Face`;
}
