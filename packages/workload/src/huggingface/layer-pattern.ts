/** Which layers attend within a window, and which have experts, where a file lists them one by one. */
import type { Experts, Window } from "../model.ts";
import { type ConfigFields, print } from "./config-fields.ts";

/**
 * The window of a model whose file has `sliding_window`, and `layer_types` in files of later years.
 * @param every What the architecture does where the file lists no layers: 0 windows all.
 */
export function windowOf(
  c: ConfigFields,
  layers: number,
  every: number,
): { readonly window?: Window } {
  const size = c.maybeCount("sliding_window");
  const listed = c.value("layer_types");
  if (size === undefined) return {};
  if (listed === undefined) return every === 1 ? {} : { window: { size, every } };
  if (!Array.isArray(listed) || listed.length !== layers) {
    return c.fail(`layer_types ${print(listed)} must list ${layers} layers, one by one`);
  }
  const kinds: readonly unknown[] = listed;
  const other = kinds.find((k) => k !== "sliding_attention" && k !== "full_attention");
  if (other !== undefined) {
    return c.fail(
      `layer_types ${print(other)} is not one of sliding_attention, full_attention; its attention is not known`,
    );
  }
  const period = kinds.indexOf("full_attention") + 1;
  if (period === 1 && !kinds.includes("sliding_attention")) return {};
  if (
    kinds.every((k, i) => (k === "full_attention") === (period > 0 && (i + 1) % period === 0)) &&
    period !== 1
  ) {
    return { window: { size, every: period } };
  }
  return c.fail(
    `layer_types: a model has full attention in every n-th layer, counted from the first; this list has another order`,
  );
}

/** First layers that are dense, and the step between layers with experts (Qwen's MoE files). */
export function sparseLayers(c: ConfigFields): Pick<Experts, "denseLayers" | "every"> {
  const listed = c.value("mlp_only_layers") ?? [];
  if (!Array.isArray(listed) || listed.some((layer, i) => layer !== i)) {
    return c.fail(
      `mlp_only_layers ${print(listed)}: a model's dense layers are its first ones; only 0, 1, 2, … is read`,
    );
  }
  return { denseLayers: listed.length, every: c.maybeCount("decoder_sparse_step") ?? 1 };
}
