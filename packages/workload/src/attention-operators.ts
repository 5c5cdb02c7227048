/**
 * softmax(QKᵀ/√d)V on one rank's heads. Arithmetic is what runs: flash attention skips the tiles that
 * the mask empties, plain attention computes the whole score matrix.
 */
import type { Model } from "./model.ts";
import type { OperatorList, Work } from "./operator-list.ts";

/** What attends to what. */
export interface AttentionSpan {
  /** Sequences. */
  readonly batch: number;
  /** Tokens of a sequence. */
  readonly sequence: number;
  readonly heads: number;
  readonly kvHeads: number;
  /** Width of queries and keys. */
  readonly headDim: number;
  /** Width of values. */
  readonly valueDim: number;
  readonly causal: boolean;
  /** Tokens that a query sees; left out, all (before it, if causal). */
  readonly window?: number;
  /** Queries and keys are rotated, this share of them. */
  readonly rotary: number;
}

/** The attention of a layer under the plan's split of heads and tokens. */
export function layerAttention(m: Model, list: OperatorList, windowed: boolean): void {
  const { tp, microbatch, sequence, document = sequence } = list.plan;
  attention(list, {
    batch: (microbatch * sequence) / document,
    sequence: document,
    heads: m.heads / tp,
    kvHeads: m.kvHeads / tp,
    headDim: m.headDim,
    valueDim: m.latent?.valueDim ?? m.headDim,
    causal: m.causal,
    rotary: rotated(m),
    ...(windowed && m.window !== undefined ? { window: m.window.size } : {}),
  });
}

/** Share of a head that is rotated. */
function rotated(m: Model): number {
  if (m.latent !== undefined) return m.latent.ropeDim / m.headDim;
  return m.position === "rotary" ? m.rotaryFraction : 0;
}

/** Pairs of query and key that meet in a sequence. */
export function pairs(s: Pick<AttentionSpan, "sequence" | "causal" | "window">): number {
  const n = s.sequence;
  const w = Math.min(n, s.window ?? n);
  const before = w * n - (w * (w - 1)) / 2;
  // Both ways, the diagonal once.
  return s.causal ? before : 2 * before - n;
}

/** Appends forward, recomputation and backward. */
export function attention(list: OperatorList, s: AttentionSpan): void {
  const { plan, element: e } = list;
  const { flashAttention, dropout, contextExchange } = plan;
  const split = contextExchange === "all-to-all";
  // Heads are dealt out to the context-parallel ranks, or each has its queries, which meet every key.
  const heads = split ? s.heads / plan.cp : s.heads;
  const kvHeads = split ? s.kvHeads / plan.cp : s.kvHeads;
  const cp = split ? 1 : plan.cp;
  const shape = [s.batch, heads, kvHeads, s.sequence, s.headDim];
  const rows = (s.batch * s.sequence) / cp;
  const width = s.headDim;
  // Queries, keys, values and the result, each once.
  const operands = rows * ((heads + kvHeads) * width + (heads + kvHeads) * s.valueDim);
  // Rotary embedding reads and writes queries and keys, in both directions.
  // Elementary operations turn a copy, multiply twice and add.
  const apart = s.rotary > 0 && plan.fusedRotary === false;
  const eager = s.rotary > 0 && !apart && !(plan.fusedRotary ?? plan.fusedElementwise);
  const turned = width * (heads + kvHeads) * s.rotary;
  const rotary = apart ? 0 : (eager ? 9 : 2) * e * rows * turned;
  if (apart) {
    const work = { flops: 3 * rows * turned, bytes: 9 * e * rows * turned };
    list.rowwise("add", "rotary-eager", [rows, turned], work, work);
  }
  const eight = plan.attentionPrecision === "fp8";
  const operand = eight ? 1 : e;
  const form = [
    flashAttention ? `flash${plan.flashVersion ?? ""}` : "plain",
    ...(eight ? ["fp8"] : []),
    ...(s.causal ? [] : ["full"]),
    ...(s.window === undefined ? [] : [`window${s.window}`]),
    ...(s.valueDim === s.headDim ? [] : [`v${s.valueDim}`]),
    ...(cp > 1 ? [`cp${cp}`] : []),
    ...(eager ? ["eager"] : []),
  ].join("-");
  let forward: Work;
  let backward: Work;
  if (flashAttention) {
    // Multiplications and additions of QKᵀ and of PV; backward has three and two of them.
    const score = (2 * s.batch * heads * pairs(s) * s.headDim) / cp;
    const value = (2 * s.batch * heads * pairs(s) * s.valueDim) / cp;
    const statistics = (4 * s.batch * heads * s.sequence) / cp;
    forward = { flops: score + value, bytes: operand * operands + statistics + rotary };
    backward = {
      flops: 3 * score + 2 * value,
      bytes: 2 * operand * operands + statistics + rotary,
    };
  } else {
    // Elementary operations scale, mask, cast, exponentiate, divide and cast back one by one.
    // Scores are written, softmax reads and writes them, the second product reads them; dropout
    // reads and writes them with a mask of a byte. Backward twice the products.
    const scores = (s.batch * heads * s.sequence * s.sequence) / cp;
    const products = 2 * scores * (s.headDim + s.valueDim);
    const unfused = plan.fusedSoftmax ? 0 : 4 * e + 16;
    const drop = dropout > 0 ? 2 * e + 1 : 0;
    forward = {
      flops: products,
      bytes: scores * (4 * e + drop + unfused) + e * operands + rotary,
    };
    backward = {
      flops: 2 * products,
      bytes: scores * (7 * e + drop + unfused) + 2 * e * operands + rotary,
    };
  }
  // Queries, keys and values come in training precision, and so does the gradient of the result.
  const read = (heads + kvHeads) * width + kvHeads * s.valueDim;
  if (eight) list.cast("fp8", rows, read, 1, "forward");
  list.push("attention", form, "forward", shape, forward);
  if (list.recomputesAttention) {
    if (eight) list.cast("fp8", rows, read, 1, "recompute");
    list.push("attention", form, "recompute", shape, forward);
  }
  if (eight) list.cast("fp8", rows, heads * s.valueDim, 1, "input-gradient");
  list.push("attention", form, "input-gradient", shape, backward);
}
