/**
 * FLOPs per token by convention: sources count differently, so a utilisation says which it means.
 * One multiply and one add are two; backward counts twice forward.
 */
import type { Flops } from "@trireme/core";
import type { Model } from "./model.ts";
import { fc1Width, parameters, qkvWidth } from "./parameters.ts";

/**
 * - `model-full`: 6N + 12Las, all parameters that multiply something (an untied input embedding does
 *   not), the whole score matrix, no recomputation: MegaScale's baseline, Megatron-LM since 2022.
 * - `model-causal`: the same with half the score matrix: Megatron-Bridge, MegaScale-MoE.
 * - `hardware`: full recomputation and the whole score matrix: SC'21's 96BsLh²(1 + s/6h + V/16Lh).
 */
export type FlopConvention = "model-full" | "model-causal" | "hardware";

/** FLOPs of one token, forward and backward, in a sequence of `p.sequence` tokens. */
export function modelFlops(
  m: Model,
  p: { readonly sequence: number },
  convention: FlopConvention = "model-full",
): Flops {
  // Forward products with the keys and with the values, over the whole sequence.
  const attention = 4 * m.layers * m.heads * m.headDim * p.sequence;
  if (convention === "hardware") {
    const weights = m.hidden * (qkvWidth(m) + m.heads * m.headDim + fc1Width(m) + m.ffn);
    return 4 * (2 * m.layers * weights + attention) + 6 * m.vocab * m.hidden;
  }
  const multiplied = parameters(m).total - (m.tied ? 0 : m.vocab * m.hidden);
  return 6 * multiplied + 3 * attention * (convention === "model-causal" ? 0.5 : 1);
}
