/**
 * One layer on one rank: norm, QKV product, attention, projection, add, norm, first product, activation,
 * second product, add; what a model has beside that in its place, and what a pattern leaves of it.
 */
import { frozen } from "./adapter.ts";
import { adapters } from "./adapter-operators.ts";
import { layerAttention } from "./attention-operators.ts";
import { expertOperators } from "./expert-operators.ts";
import type { LayerForm } from "./layer-form.ts";
import { type Model, isGated } from "./model.ts";
import type { OperatorList } from "./operator-list.ts";
import { contextWidth, fc1Width, qkvWidth } from "./parameters.ts";
import { scanOperators } from "./scan-operators.ts";
import { isScan } from "./scan-widths.ts";

/** Appends the operators of a layer of one form. */
export function layerOperators(m: Model, list: OperatorList, form: LayerForm): void {
  const p = list.plan;
  const tokens = (p.microbatch * p.sequence) / p.cp;
  // The norms and adds of a sequence-parallel rank see its part of the tokens only.
  const rows = p.sequenceParallel ? tokens / p.tp : tokens;
  const before = m.normPlacement !== "post";
  const after = m.normPlacement !== "pre";
  if (form.mixer !== "none") {
    if (before) list.norm(m.norm, rows, m.hidden);
    if (isScan(form.mixer)) scanOperators(m, list, form.mixer, tokens);
    else attentionBlock(m, list, tokens, form.windowed);
    if (after) list.norm(m.norm, rows, m.hidden);
    list.add(rows, m.hidden);
  }
  if (!form.experts && !form.dense) return;
  if (before && !m.sharedNorm) list.norm(m.norm, rows, m.hidden);
  if (form.experts) {
    list.expertBlock(() => {
      expertOperators(m, list, (n, ffn) => {
        feedForward(m, list, n, ffn);
      });
    });
  } else {
    feedForward(m, list, tokens, m.ffn / p.tp);
  }
  if (after) list.norm(m.norm, rows, m.hidden);
  list.add(rows, m.hidden);
}

function attentionBlock(m: Model, list: OperatorList, tokens: number, windowed: boolean): void {
  const { tp } = list.plan;
  if (m.latent === undefined) projections(m, list, tokens);
  else latentProjections(m, list, tokens);
  layerAttention(m, list, windowed);
  if (m.attentionGate) gate(list, tokens, contextWidth(m) / tp);
  // Of separate query, key, value, output, gate, up and down products, every other one is dropped.
  list.gemm(tokens, contextWidth(m) / tp, m.hidden, m.outputBias, {
    dropped: m.hidden,
    ...frozen(m),
  });
  adapters(m, list, tokens, ["output"]);
}

/** What attention gave times the sigmoid of a projection. */
function gate(list: OperatorList, rows: number, width: number): void {
  const n = rows * width;
  const bytes = 3 * list.element * n;
  list.rowwise(
    "activation",
    "gate",
    [rows, width],
    { flops: 5 * n, bytes },
    { flops: 10 * n, bytes: (5 * bytes) / 3 },
  );
}

function projections(m: Model, list: OperatorList, tokens: number): void {
  const { tp } = list.plan;
  const keys = (m.kvHeads * m.headDim) / tp;
  list.gemm(tokens, m.hidden, qkvWidth(m) / tp, m.qkvBias, { dropped: keys, ...frozen(m) });
  adapters(m, list, tokens, ["query", "key", "value", "qkv"]);
  if (m.qkNorm === "none") return;
  // Over each head, or over all the rank's heads together: the same numbers, in other rows.
  const width = (m.heads + m.kvHeads) * (m.headDim / tp);
  if (m.qkNorm === "all") list.norm("rmsnorm", tokens, width);
  else list.norm("rmsnorm", (tokens * (m.heads + m.kvHeads)) / tp, m.headDim);
}

/** Down to the latents with their norms, on every rank; up to the rank's heads (DeepSeek-V2, Eqs. 9 to 13, 37 to 47). */
function latentProjections(m: Model, list: OperatorList, tokens: number): void {
  const { queryRank, keyValueRank, nopeDim, ropeDim, valueDim } = m.latent!;
  const heads = m.heads / list.plan.tp;
  const query = heads * m.headDim;
  const rows = list.plan.sequenceParallel ? tokens / list.plan.tp : tokens;
  if (queryRank === 0) {
    list.gemm(tokens, m.hidden, query, false, frozen(m));
    adapters(m, list, tokens, ["query"]);
  } else {
    list.gemm(rows, m.hidden, queryRank, false, frozen(m));
    adapters(m, list, rows, ["query-down"]);
    list.norm("rmsnorm", rows, queryRank);
    list.gemm(tokens, queryRank, query, false, frozen(m));
    adapters(m, list, tokens, ["query-up"]);
  }
  list.gemm(rows, m.hidden, keyValueRank + ropeDim, false, frozen(m));
  adapters(m, list, rows, ["key-value-down"]);
  list.norm("rmsnorm", rows, keyValueRank);
  list.gemm(tokens, keyValueRank, heads * (nopeDim + valueDim), false, frozen(m));
  adapters(m, list, tokens, ["key-value-up"]);
  headsOfLatents(list, tokens, heads, m.headDim, nopeDim, valueDim);
}

/**
 * Keys from what each head has of its own and the rotated part that all share, beside values, which lie between
 * them in the product's result (Megatron-LM, fused_mla_yarn_rope_apply.py); backward takes them apart again. From
 * elementary operations queries are put together likewise, and values laid apart (multi_latent_attention.py).
 */
function headsOfLatents(
  list: OperatorList,
  rows: number,
  heads: number,
  headDim: number,
  nopeDim: number,
  valueDim: number,
): void {
  const width = heads * (headDim + valueDim);
  const bytes = list.element * rows * (heads * (nopeDim + valueDim) + width);
  if (list.plan.fusedRotary === false) {
    const work = { flops: 0, bytes: bytes + 2 * list.element * rows * width };
    list.rowwise("add", "latent-eager", [rows, width], work, work);
    return;
  }
  const work = { flops: 0, bytes };
  list.rowwise("add", "latent", [rows, width], work, work);
}

/** Two products with the activation between; `ffn` is the rank's width. */
function feedForward(m: Model, list: OperatorList, tokens: number, ffn: number): void {
  const up = isGated(m.activation) ? ffn : 0;
  list.gemm(tokens, m.hidden, fc1Width(m, ffn), m.bias, { dropped: up, ...frozen(m) });
  adapters(m, list, tokens, ["gate", "up", "gate-up"]);
  list.activation(m.activation, tokens, ffn, m.activationClamp > 0);
  list.gemm(tokens, ffn, m.hidden, m.bias, frozen(m));
  adapters(m, list, tokens, ["down"]);
}
