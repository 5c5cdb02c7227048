/**
 * The collectives of a stage. Tensor parallelism (arXiv 1909.08053 §3): one all-reduce of the
 * activation after attention and one after the feed-forward block, and two in backward; sequence parallelism (arXiv
 * 2205.05198 §4.2) puts an all-gather and a reduce-scatter in place of each, and gathers the saved inputs once more for
 * the weight gradients. A parallel block reduces once for both branches.
 */
import { adapterParameters } from "./adapter.ts";
import { encoderParameters, trainsEncoder } from "./encoder.ts";
import { encoderCollectives } from "./encoder-collectives.ts";
import { expertCollectives } from "./expert-collectives.ts";
import { replicaCollectives } from "./replica-collectives.ts";
import { type LayerForm, countForms, layerFormAt, layerForms } from "./layer-form.ts";
import type { Model } from "./model.ts";
import type { CollectiveOperator, Pass } from "./operator.ts";
import { finalParameters, layerParameters, normParameters } from "./parameters.ts";
import { type Plan, recomputedLayers } from "./plan.ts";
import { bytesOf } from "./precision.ts";
import { type Scan, scanWidths } from "./scan-widths.ts";
import { type Stage, stageParameters, vocabShard } from "./stage.ts";

/** Appends a collective, unless there is none of it. */
export type Push = (
  kind: CollectiveOperator["kind"],
  axis: CollectiveOperator["axis"],
  pass: Pass,
  bytes: number,
  count: number,
) => void;

/** The collectives of one microbatch through the stage; those with pass "update" come once per step. */
export function stageCollectives(m: Model, p: Plan, s: Stage): readonly CollectiveOperator[] {
  const list: CollectiveOperator[] = [];
  const push: Push = (kind, axis, pass, bytes, count) => {
    if (count > 0 && bytes > 0) list.push({ kind, axis, bytes, pass, count });
  };
  if (p.tp > 1 && s.embedding) {
    for (const e of m.encoders) encoderCollectives(push, m, p, e);
  }
  if (p.tp > 1) tensorParallel(push, m, p, s);
  if (p.cp > 1) contextParallel(push, m, p, s);
  if (m.experts !== undefined) {
    expertCollectives(
      push,
      m,
      p,
      layersOf(m, p, s, (form) => form.experts),
    );
  }
  list.push(...replicaCollectives(p, stageParameters(m, p, s)));
  return list;
}

/** Layers of a stage, prediction modules' among them, and how many of them backward computes again. */
export interface LayerCounts {
  readonly all: number;
  readonly recomputed: number;
}

/** Layers of some forms, prediction modules' among them. */
function layersOf(m: Model, p: Plan, s: Stage, of: (form: LayerForm) => boolean): LayerCounts {
  const forms = layerForms(m);
  const sum = (layers: number): number =>
    countForms(m, s.firstLayer, layers).reduce((n, c, i) => n + (of(forms[i]!) ? c : 0), 0);
  const predicted = s.head && of(forms[layerFormAt(m, m.layers)]!) ? m.prediction : 0;
  const again = p.recompute === "none" ? 0 : predicted;
  return {
    all: sum(s.layers) + predicted,
    recomputed: sum(recomputedLayers(p, s.layers)) + again,
  };
}

function attentionLayers(m: Model, p: Plan, s: Stage): LayerCounts {
  return layersOf(m, p, s, (form) => form.mixer === "attention");
}

/** Layers with an expert that sees every token. */
function sharedExperts(m: Model, p: Plan, s: Stage): LayerCounts {
  return layersOf(m, p, s, (form) => form.experts && m.experts!.sharedFfn > 0);
}

/** Blocks whose inputs are gathered and outputs reduced over tp: mixers and dense feed-forward ones. */
interface Blocks {
  readonly gathered: LayerCounts;
  readonly reduced: LayerCounts;
}

function tensorBlocks(m: Model, p: Plan, s: Stage): Blocks {
  const mixers = layersOf(m, p, s, (form) => form.mixer !== "none");
  // Routed tokens stay where sequence parallelism left them; a shared expert gathers as a dense block does.
  const shared = (m.experts?.sharedFfn ?? 0) > 0;
  const dense = layersOf(m, p, s, (form) => form.dense || (form.experts && shared));
  const blocks = (both: boolean, key: keyof LayerCounts): number =>
    mixers[key] + (both ? dense[key] : 0);
  const [gathers, reductions] = [!m.sharedNorm, m.block !== "parallel"];
  return {
    gathered: { all: blocks(gathers, "all"), recomputed: blocks(gathers, "recomputed") },
    reduced: { all: blocks(reductions, "all"), recomputed: blocks(reductions, "recomputed") },
  };
}

function tensorParallel(push: Push, m: Model, p: Plan, s: Stage): void {
  const tokens = (p.microbatch * p.sequence) / p.cp;
  const activation = tokens * m.hidden * bytesOf(p.precision);
  const { gathered, reduced } = tensorBlocks(m, p, s);
  const full = p.recompute === "full";
  const shared = p.recompute === "experts" ? sharedExperts(m, p, s).recomputed : 0;
  const gathersAgain = full || p.recompute === "operators" || p.recompute === "rematerialise";
  // Prediction modules look tokens up and compute logits of their own.
  const predicted = s.head ? m.prediction : 0;
  const split = p.vocabulary !== undefined;
  const embedding = ((split ? s.vocabulary === true : s.embedding) ? 1 : 0) + predicted;
  const head = ((split ? s.vocabulary === true : s.head) ? 1 : 0) + predicted;
  // Latent attention gathers its latents in place of the layer's input.
  const latent = latentGather(m);
  const attentions = latent === 0 ? 0 : attentionLayers(m, p, s).all;
  const again = latent === 0 ? 0 : attentionLayers(m, p, s).recomputed;
  const latents = tokens * latent * bytesOf(p.precision);
  const gather = (pass: Pass, blocks: number, layers: number, others: number): void => {
    push("all-gather", "tp", pass, activation, blocks - layers + others);
    push("all-gather", "tp", pass, latents, layers);
  };
  if (p.sequenceParallel) {
    gather("forward", gathered.all, attentions, head);
    push("reduce-scatter", "tp", "forward", activation, reduced.all + embedding);
    if (gathersAgain) gather("recompute", gathered.recomputed, again, 0);
    push("all-gather", "tp", "recompute", activation, shared);
    push("reduce-scatter", "tp", "recompute", activation, full ? reduced.recomputed : shared);
    push("all-gather", "tp", "input-gradient", activation, reduced.all);
    push("reduce-scatter", "tp", "input-gradient", activation, gathered.all - attentions + head);
    push("reduce-scatter", "tp", "input-gradient", latents, attentions);
    // The inputs of QKV, first feed-forward product and logits are kept as the rank's part. Frozen matrices need
    // theirs no more, and adapters keep what was gathered (Megatron-Bridge, peft/utils.py:
    // return_layernorm_output_gathered).
    if (m.adapter === undefined) {
      gather("weight-gradient", gathered.all, attentions, head + embedding);
    }
    const bytes = replicatedOnTensor(m, s) * bytesOf(p.gradientPrecision);
    push("all-reduce", "tp", "update", bytes, 1);
  } else {
    push("all-reduce", "tp", "forward", activation, reduced.all + embedding);
    push("all-reduce", "tp", "recompute", activation, full ? reduced.recomputed : 0);
    push("all-reduce", "tp", "input-gradient", activation, gathered.all + head);
  }
  // The loss exchanges each token's maximum, target logit and sum of exponentials.
  // Or every rank gets all logits.
  const logits = tokens * vocabShard(m, p) * p.tp * bytesOf(p.precision);
  push("all-reduce", "tp", "forward", 4 * tokens, p.vocabParallelLoss ? 3 * head : 0);
  push("all-gather", "tp", "forward", logits, p.vocabParallelLoss ? 0 : head);
}

/** Width that latent attention gathers in a layer; 0 without it. */
function latentGather(m: Model): number {
  if (m.latent === undefined) return 0;
  const { queryRank, keyValueRank, ropeDim } = m.latent;
  return (queryRank === 0 ? m.hidden : queryRank) + keyValueRank + ropeDim;
}

/** Parameters whose gradients the tensor-parallel ranks sum, each having seen its part of the tokens. */
function replicatedOnTensor(m: Model, s: Stage): number {
  if (m.adapter !== undefined) return s.layers * adapterParameters(m).replicated;
  const counts = countForms(m, s.firstLayer, s.layers);
  const forms = layerForms(m);
  let sum = 0;
  for (const [i, form] of forms.entries()) sum += counts[i]! * layerParameters(m, form).replicated;
  if (s.embedding && m.embeddingNorm) sum += normParameters(m);
  if (s.embedding) {
    for (const e of m.encoders) if (trainsEncoder(m, e)) sum += encoderParameters(m, e).byTokens;
  }
  if (!s.head) return sum;
  const layer = layerParameters(m, forms[layerFormAt(m, m.layers)]!).replicated;
  return sum + finalParameters(m) + m.prediction * (layer + 3 * normParameters(m));
}

/**
 * Keys and values of a sample meet every query: gathered in both directions, their gradients scattered;
 * or heads are exchanged for tokens before attention, and back behind it.
 */
function contextParallel(push: Push, m: Model, p: Plan, s: Stage): void {
  for (const scan of ["mamba", "delta-net"] as const) scanExchange(push, m, p, s, scan);
  const { all, recomputed } = attentionLayers(m, p, s);
  const again = p.recompute === "selective" || p.recompute === "full" ? recomputed : 0;
  const tokens = (p.microbatch * p.sequence * bytesOf(p.precision)) / p.tp;
  const value = m.latent?.valueDim ?? m.headDim;
  const keysAndValues = m.kvHeads * (m.headDim + value);
  if (p.contextExchange === "all-to-all") {
    const inward = (tokens * (m.heads * m.headDim + keysAndValues)) / p.cp;
    const outward = (tokens * m.heads * value) / p.cp;
    for (const [pass, count] of [
      ["forward", all],
      ["recompute", again],
      ["input-gradient", all],
    ] as const) {
      push("all-to-all", "cp", pass, inward, count);
      push("all-to-all", "cp", pass, outward, count);
    }
    return;
  }
  const bytes = tokens * keysAndValues;
  push("all-gather", "cp", "forward", bytes, all);
  push("all-gather", "cp", "recompute", bytes, again);
  push("all-gather", "cp", "input-gradient", bytes, all);
  push("reduce-scatter", "cp", "input-gradient", bytes, all);
}

/**
 * Heads for tokens in front of a convolution and its scan, and back behind them (Megatron-LM,
 * mamba_context_parallel.py).
 */
function scanExchange(push: Push, m: Model, p: Plan, s: Stage, scan: Scan): void {
  const { all, recomputed } = layersOf(m, p, s, (form) => form.mixer === scan);
  if (all === 0) return;
  const tokens = (p.microbatch * p.sequence * bytesOf(p.precision)) / p.tp / p.cp;
  const { projected, inner } = scanWidths(m, scan);
  for (const [pass, count] of [
    ["forward", all],
    ["recompute", p.recompute === "full" || p.recompute === "operators" ? recomputed : 0],
    ["input-gradient", all],
  ] as const) {
    push("all-to-all", "cp", pass, tokens * projected, count);
    push("all-to-all", "cp", pass, tokens * inner, count);
  }
}
