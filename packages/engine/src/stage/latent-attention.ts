/**
 * Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1): queries, keys and values
 * are made from narrow latents. Every rank makes the latents of its tokens; tensor-parallel ranks
 * gather these, and each makes its heads from them.
 */
import type { Model } from "@trireme/workload";
import { attention } from "../operators/attention.ts";
import { joinColumns, splitColumns } from "../operators/column-parts.ts";
import { type LatentShape, latentHeads, latentValues } from "../operators/latent-heads.ts";
import { linear } from "../operators/linear.ts";
import { rmsNorm } from "../operators/norm.ts";
import { enterTensorParallel } from "../operators/tensor-parallel.ts";
import type { Parallel } from "../layout/parallel.ts";
import type { Range } from "../memory/slice.ts";
import type { Parameter, Tape, Variable } from "../tape/tape.ts";

/** What a layer's latent attention computes with. */
export interface LatentAttentionOptions {
  readonly model: Model;
  readonly parallel: Parallel;
  /** The layer's tensors, by their names within its attention. */
  readonly get: (name: string) => Parameter;
  readonly batch: number;
  readonly pieces: readonly Range[];
  /** Tokens that a query sees, itself included; 0 for all before it. */
  readonly window: number;
}

/** The result of this rank's heads [tokens, heads·valueDim], and a way to forget it until a backward asks. */
export function latentAttention(
  tape: Tape,
  x: Variable,
  { model, parallel, get, batch, pieces, window }: LatentAttentionOptions,
): { readonly y: Variable; readonly drop: () => void } {
  const { tensor, context } = parallel;
  const { queryRank, keyValueRank, ...dims } = model.latent!;
  const { ropeDim } = dims;
  const normed = (latent: Variable, name: string): Variable =>
    rmsNorm(tape, latent, get(`${name}.weight`), { epsilon: model.normEpsilon });

  const query =
    queryRank === 0 ? x : normed(linear(tape, x, get("q_a_proj.weight")), "q_a_layernorm");
  const down = linear(tape, x, get("kv_a_proj_with_mqa.weight"));
  const [latent, key] = splitColumns(tape, down, [keyValueRank, ropeDim]);
  const narrow = [query, normed(latent!, "kv_a_layernorm"), key!];
  const [queryAll, latentAll, keyAll] = ((): Variable[] => {
    if (tensor === undefined) return narrow;
    // One message for all of them.
    const { y, drop } = enterTensorParallel(tape, joinColumns(tape, narrow), tensor);
    const parts = splitColumns(
      tape,
      y,
      narrow.map(({ value }) => value.dims[1]!),
    );
    drop();
    return parts;
  })();
  const heads = model.heads / (tensor?.group.ranks ?? 1);
  const up = queryRank === 0 ? "q_proj.weight" : "q_b_proj.weight";
  const queries = linear(tape, queryAll!, get(up));
  const keysValues = linear(tape, latentAll!, get("kv_b_proj.weight"));

  const shape: LatentShape = { ...dims, batch, pieces, heads, rotaryBase: model.rotaryBase };
  const qkv = latentHeads(tape, queries, keysValues, keyAll!, shape);
  const headDim = dims.nopeDim + ropeDim;
  // Positions are in the heads already.
  const plain = { batch, pieces, heads, kvHeads: heads, headDim, rotaryBase: undefined, window };
  const mixed = attention(tape, qkv, plain, context);
  const values = latentValues(tape, mixed.y, shape);
  return {
    y: values.y,
    drop: () => {
      values.drop();
      mixed.drop();
    },
  };
}
