/**
 * Low-rank adapters beside frozen matrices (Hu et al., LoRA, 2021): where each is, and what is stored.
 * Nothing scales their product: of files whose factor is alpha / rank, B is to be multiplied by it.
 */
import { type AdapterTarget, type Model, isGated } from "@trireme/workload";
import type { ParameterSpec } from "./parameter.ts";
import { type Share, evenly } from "./spec-parts.ts";
import type { Range, Slice } from "../memory/slice.ts";

/** The adapter of one target: A [inputs, rank] and B [rank, columns], by their names. */
export interface MatrixAdapter {
  readonly down: string;
  readonly up: string;
  /** Of the matrix's result, to which it adds. */
  readonly columns: Range;
  /** Columns of B that ranks share out each for themselves: those of queries, keys and values where one adapter has all. */
  readonly widths: readonly number[];
}

/** The adapters of the matrix of this name, such as `h.0.attn.c_attn`, on one of so many ranks that share it out. */
export function matrixAdapters(model: Model, name: string, ranks = 1): readonly MatrixAdapter[] {
  if (model.adapter === undefined) return [];
  const { targets } = model.adapter;
  return partsOf(model, name)
    .filter(([target]) => targets.includes(target))
    .map(([target, { start, count }, widths = [count]]) => ({
      widths,
      down: `${name}.lora_A.${target}`,
      up: `${name}.lora_B.${target}`,
      columns: isRowParallel(name)
        ? { start, count }
        : { start: start / ranks, count: count / ranks },
    }));
}

/**
 * The tensors of a stage, frozen, each matrix followed by its adapters, which are trained. Of ranks that
 * share out the columns of a matrix each has all of A and its columns of B; of ranks that share out its
 * rows, its rows of A and all of B. Of what all have, each has a part of the gradient.
 */
export function besideAdapters(
  model: Model,
  specs: readonly ParameterSpec[],
  share: Share,
): ParameterSpec[] {
  const { ranks } = share;
  const { rank } = model.adapter!;
  return specs.flatMap((spec) => {
    const { name, dims } = spec;
    const matrix = name.endsWith(".weight") ? name.slice(0, -".weight".length) : "";
    const adapters = matrixAdapters(model, matrix).flatMap(({ down, up, widths }) => {
      const rows = isRowParallel(matrix) ? spec.slice : undefined;
      const { total, ranges } = evenly(share, widths);
      const columns = ranks === 1 || isRowParallel(matrix) ? undefined : { dim: 1, ranges };
      return [
        trained(down, [dims[0]!, rank], { deviation: 1 / Math.sqrt(dims[0]!) }, rows),
        // At first an adapter changes nothing.
        trained(up, [rank, total], { constant: 0 }, columns),
      ];
    });
    return [{ ...spec, frozen: true }, ...adapters];
  });
}

/** Whether a name is that of an adapter's tensor, or of its optimizer's state. */
export function isAdapter(name: string): boolean {
  return name.includes(".lora_");
}

function trained(
  name: string,
  dims: readonly number[],
  initial: ParameterSpec["initial"],
  slice: Slice | undefined,
): ParameterSpec {
  const common = { name, dims, slice, initial, decays: true };
  return slice === undefined ? { ...common, role: "summed" } : common;
}

/** Whether ranks share out a matrix by its rows: the second of a pair. */
function isRowParallel(name: string): boolean {
  return name.endsWith(".c_proj") || name.endsWith(".o_proj");
}

/** What adapters of a matrix add to: a target, its columns, and parts of them that lie apart on ranks. */
type Part = readonly [target: AdapterTarget, columns: Range, widths?: readonly number[]];

/** What the columns of a matrix are, each by itself and side by side. */
function partsOf(model: Model, name: string): readonly Part[] {
  const { heads, kvHeads, headDim, hidden, ffn, activation } = model;
  const [queries, keys] = [heads * headDim, kvHeads * headDim];
  if (name.endsWith(".attn.c_attn")) {
    return [
      ["query", { start: 0, count: queries }],
      ["key", { start: queries, count: keys }],
      ["value", { start: queries + keys, count: keys }],
      ["qkv", { start: 0, count: queries + 2 * keys }, [queries, keys, keys]],
    ];
  }
  // The second is latent attention's.
  if (name.endsWith(".attn.c_proj") || name.endsWith(".attn.o_proj"))
    return [["output", { start: 0, count: hidden }]];
  if (name.endsWith(".mlp.c_proj")) return [["down", { start: 0, count: hidden }]];
  if (!name.endsWith(".mlp.c_fc")) return [];
  if (!isGated(activation)) return [["up", { start: 0, count: ffn }]];
  return [
    ["gate", { start: 0, count: ffn }],
    ["up", { start: ffn, count: ffn }],
    ["gate-up", { start: 0, count: 2 * ffn }, [ffn, ffn]],
  ];
}
