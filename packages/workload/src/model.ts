/**
 * A model is what is computed, not how it is split: a decoder-only transformer given by its shape.
 * Two families share the record. GPT form (Radford et al. 2019; Brown et al. 2020): learned
 * positions, LayerNorm, GeLU, biases, tied embeddings. Llama form (Touvron et al. 2023; Llama 3,
 * 2024): rotary positions, RMSNorm, SwiGLU, grouped-query attention, no biases, untied.
 */
import { TriremeError } from "@trireme/core";

/** A decoder-only transformer. Counts are plain numbers; `source` says where they come from. */
export interface Model {
  readonly name: string;
  readonly layers: number;
  /** Width of the residual stream. */
  readonly hidden: number;
  /** Query heads. */
  readonly heads: number;
  /** Key and value heads: `heads` for multi-head, 1 for multi-query attention. */
  readonly kvHeads: number;
  readonly headDim: number;
  /** Width inside the feed-forward block; SwiGLU computes two such projections, gate and up. */
  readonly ffn: number;
  readonly vocab: number;
  /** Longest sequence, tokens; the rows of a learned position table. */
  readonly context: number;
  readonly position: "learned" | "rotary" | "none";
  /** Base of the rotary angles; no meaning with other positions. */
  readonly rotaryBase: number;
  readonly norm: "layernorm" | "rmsnorm";
  /** What the norms add to the variance, or mean square. */
  readonly normEpsilon: number;
  readonly activation: "gelu" | "swiglu" | "squared-relu";
  /** Every linear layer has a bias. */
  readonly bias: boolean;
  /** The query, key and value projections have one although the others may not (Qwen 2). */
  readonly qkvBias: boolean;
  /** The output head reuses the token embedding. */
  readonly tied: boolean;
  readonly source: string;
}

/** What `defineModel` needs, and what it may be told beside that. */
export type ModelOptions = Pick<Model, "layers" | "hidden" | "heads" | "vocab"> & Partial<Model>;

const sizes = [
  "layers",
  "hidden",
  "heads",
  "kvHeads",
  "headDim",
  "ffn",
  "vocab",
  "context",
] as const;

/**
 * A model from its shape; what is left out has GPT form: kvHeads = heads, headDim = hidden / heads,
 * ffn = 4 hidden, context 2048, learned positions, LayerNorm, GeLU, biases, tied embeddings.
 * Throws TriremeError "MODEL" for counts that are not positive integers and heads that do not divide.
 */
export function defineModel(o: ModelOptions): Model {
  if (o.headDim === undefined && o.hidden % o.heads !== 0) {
    throw new TriremeError(
      "MODEL",
      `hidden ${o.hidden} is not a multiple of heads ${o.heads}; use heads ${nearestDivisor(o.hidden, o.heads)}, or state headDim`,
    );
  }
  const bias = o.bias ?? true;
  const m: Model = {
    name: o.name ?? "custom",
    layers: o.layers,
    hidden: o.hidden,
    heads: o.heads,
    kvHeads: o.kvHeads ?? o.heads,
    headDim: o.headDim ?? o.hidden / o.heads,
    ffn: o.ffn ?? 4 * o.hidden,
    vocab: o.vocab,
    context: o.context ?? 2048,
    position: o.position ?? "learned",
    rotaryBase: o.rotaryBase ?? 10_000,
    norm: o.norm ?? "layernorm",
    normEpsilon: o.normEpsilon ?? 1e-5,
    activation: o.activation ?? "gelu",
    bias,
    qkvBias: o.qkvBias ?? bias,
    tied: o.tied ?? true,
    source: o.source ?? "defined by its shape",
  };
  for (const key of sizes) {
    if (!Number.isSafeInteger(m[key]) || m[key] < 1) {
      throw new TriremeError("MODEL", `${key} ${m[key]} must be a whole number, 1 or more`);
    }
  }
  if (m.heads % m.kvHeads !== 0) {
    throw new TriremeError(
      "MODEL",
      `heads ${m.heads} is not a multiple of kvHeads ${m.kvHeads}; use kvHeads ${nearestDivisor(m.heads, m.kvHeads)}`,
    );
  }
  return m;
}

/** The divisor of `n` nearest to `target`, the smaller of equals; 1 when `n` is no positive integer. */
export function nearestDivisor(n: number, target: number): number {
  if (!Number.isSafeInteger(n) || n < 1) return 1;
  let best = 1;
  const consider = (d: number): void => {
    const gain = Math.abs(best - target) - Math.abs(d - target);
    if (gain > 0 || (gain === 0 && d < best)) best = d;
  };
  for (let d = 1; d * d <= n; d++) {
    if (n % d !== 0) continue;
    consider(d);
    consider(n / d);
  }
  return best;
}
