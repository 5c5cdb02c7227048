/** The tensors of a layer's attention. */
import type { LatentAttention, Model } from "@trireme/workload";
import type { ParameterSpec } from "./parameter.ts";
import {
  type Share,
  constant,
  evenly,
  lastSpread,
  matrix,
  splitColumns,
  splitRows,
} from "./spec-parts.ts";

/** All of them; `name` is where their names begin. */
export function attentionSpecs(model: Model, name: string, share: Share): ParameterSpec[] {
  const { latent } = model;
  return latent === undefined
    ? plainAttention(model, name, share)
    : latentAttention(model, latent, name, share);
}

function plainAttention(model: Model, name: string, share: Share): ParameterSpec[] {
  const { hidden, heads, kvHeads, headDim, outputBias, qkvBias, qkNorm } = model;
  const [queries, keys] = [heads * headDim, kvHeads * headDim];
  // Every rank has the gains, and in their gradients the part of its heads.
  const gain = (of: string): ParameterSpec => ({
    ...constant(`${name}.${of}.weight`, headDim, 1),
    role: "summed",
  });
  const qkv = evenly(share, [queries, keys, keys]);
  return [
    ...splitColumns(`${name}.c_attn`, hidden, queries + 2 * keys, qkv, share, qkvBias),
    ...splitRows(`${name}.c_proj`, queries, hidden, share, outputBias, lastSpread(model)),
    ...(qkNorm === "head" ? [gain("q_norm"), gain("k_norm")] : []),
  ];
}

/** Under the names of DeepSeek's files: latents and their norms on every rank, heads shared out. */
function latentAttention(
  { hidden, heads, headDim, layers }: Model,
  { queryRank, keyValueRank, nopeDim, ropeDim, valueDim }: LatentAttention,
  name: string,
  share: Share,
): ParameterSpec[] {
  const up = (to: string, inputs: number, outputs: number): ParameterSpec[] =>
    splitColumns(`${name}.${to}`, inputs, outputs, evenly(share, [outputs]), share, false);
  const gain = (to: string, width: number): ParameterSpec =>
    constant(`${name}.${to}.weight`, width, 1);
  const queries = heads * headDim;
  return [
    ...(queryRank === 0
      ? up("q_proj", hidden, queries)
      : [
          matrix(`${name}.q_a_proj.weight`, [hidden, queryRank]),
          gain("q_a_layernorm", queryRank),
          ...up("q_b_proj", queryRank, queries),
        ]),
    matrix(`${name}.kv_a_proj_with_mqa.weight`, [hidden, keyValueRank + ropeDim]),
    gain("kv_a_layernorm", keyValueRank),
    ...up("kv_b_proj", keyValueRank, heads * (nopeDim + valueDim)),
    ...splitRows(`${name}.o_proj`, heads * valueDim, hidden, share, false, lastSpread({ layers })),
  ];
}
