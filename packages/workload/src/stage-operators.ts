/** One microbatch through one stage on one rank: its operators in order of execution, and its collectives. */
import { encoderOperators } from "./encoder-operators.ts";
import { embedding, loss, optimizer } from "./end-operators.ts";
import { type LayerForm, countForms, firstLayerOf, layerFormAt, layerForms } from "./layer-form.ts";
import { layerOperators } from "./layer-operators.ts";
import type { Model } from "./model.ts";
import { OperatorList } from "./operator-list.ts";
import type { CollectiveOperator, Operator } from "./operator.ts";
import { expertReplicas } from "./axes.ts";
import { type Plan, recomputedLayers } from "./plan.ts";
import { bytesOf } from "./precision.ts";
import { type Stage, lossVocab, stageParameters, stagePlan, vocabShard } from "./stage.ts";
import { stageCollectives } from "./stage-collectives.ts";
import { vocabularyOperators } from "./vocabulary.ts";

/** What a rank does for one microbatch of a stage; what has pass "update" happens once per step. */
export interface StageOperators {
  readonly operators: readonly Operator[];
  readonly collectives: readonly CollectiveOperator[];
}

/**
 * Operators and collectives of stage `s` on one rank after every split. Forward order: encoders,
 * embedding, layers as `layerOperators` has them, prediction modules, norm, logits, loss; with a vocabulary split over
 * the pipeline ranks, embedding, logits and loss of the rank's part at the end. All backward work of a kernel without
 * weights is its input gradient; the embedding's is a weight gradient; a product has both. Equal layers
 * are listed once, with their number as count: those that are recomputed apart from those that are not,
 * and those of one form apart from those of another, in the order in which forms first occur.
 */
export function stageOperators(m: Model, plan: Plan, s: Stage): StageOperators {
  const p = stagePlan(plan, s);
  const list = new OperatorList(p);
  const tokens = (p.microbatch * p.sequence) / p.cp;
  const frozen = m.adapter !== undefined;
  if (s.embedding) {
    for (const e of m.encoders) list.operators.push(...encoderOperators(m, p, e));
    if (p.vocabulary === undefined) embedding(list, tokens, m.hidden, vocabShard(m, p), frozen);
    if (m.embeddingNorm) list.norm(m.norm, normRows(p, tokens), m.hidden);
    gathered(m, p, { ...nothing, embedding: true }, list);
  }
  const again = recomputedLayers(p, s.layers);
  layers(m, p, list, countForms(m, s.firstLayer, again), p.recompute);
  layers(m, p, list, countForms(m, s.firstLayer + again, s.layers - again), "none");
  list.repeat(1, "none");
  if (s.head) head(m, p, list, tokens);
  if (s.head) gathered(m, p, { ...nothing, head: true }, list);
  if (s.vocabulary === true) {
    vocabularyOperators(m, list, tokens);
    gathered(m, p, { ...nothing, vocabulary: true }, list);
  }
  updates(m, p, s, list);
  return { operators: list.operators, collectives: stageCollectives(m, p, s) };
}

/** A part of a stage with nothing in it. */
const nothing: Stage = { stage: 0, firstLayer: 0, layers: 0, embedding: false, head: false };

function layers(
  m: Model,
  p: Plan,
  list: OperatorList,
  counts: readonly number[],
  recompute: Plan["recompute"],
): void {
  for (const [i, form] of layerForms(m).entries()) {
    if (counts[i] === 0) continue;
    list.repeat(counts[i]!, recompute);
    layerOperators(m, list, form);
    gathered(m, p, { ...nothing, firstLayer: firstLayerOf(m, i), layers: 1 }, list);
  }
}

/** The copies of what ZeRO 3 gathers of a part of a stage, in front of it forward and backward. */
function gathered(m: Model, p: Plan, s: Stage, list: OperatorList): void {
  if (p.gatheredCopies !== true || p.zero !== 3) return;
  const held = stageParameters(m, p, s);
  const dense = p.dp * p.cp > 1 ? held.total - held.experts : 0;
  const n = dense + (expertReplicas(p) > 1 ? held.experts : 0);
  if (n === 0) return;
  const work = { flops: 0, bytes: 2 * bytesOf(p.precision) * n };
  list.push("add", "gathered", "forward", [1, n], work);
  list.push("add", "gathered", "input-gradient", [1, n], work);
}

function normRows(p: Plan, tokens: number): number {
  return p.sequenceParallel ? tokens / p.tp : tokens;
}

/** Prediction modules, each with logits of its own, and the head. */
function head(m: Model, p: Plan, list: OperatorList, tokens: number): void {
  if (m.prediction > 0) {
    const form: LayerForm = layerForms(m)[layerFormAt(m, m.layers)]!;
    const rows = normRows(p, tokens);
    list.repeat(m.prediction, "none");
    embedding(list, tokens, m.hidden, vocabShard(m, p), m.adapter !== undefined);
    list.norm(m.norm, rows, m.hidden);
    list.norm(m.norm, rows, m.hidden);
    list.gemm(tokens, 2 * m.hidden, m.hidden / p.tp, false);
    list.repeat(m.prediction, p.recompute);
    layerOperators(m, list, form);
    list.repeat(m.prediction, "none");
    logits(m, p, list, tokens);
    list.repeat(1, "none");
  }
  logits(m, p, list, tokens);
}

function logits(m: Model, p: Plan, list: OperatorList, tokens: number): void {
  const frozen = m.adapter !== undefined;
  if (m.finalNorm) list.norm(m.norm, normRows(p, tokens), m.hidden);
  if (m.pooler) list.gemm(p.microbatch, m.hidden, m.hidden, true, { quantise: false, frozen });
  if (p.vocabulary !== undefined) return;
  list.gemm(tokens, m.hidden, vocabShard(m, p), m.headBias, { quantise: false, frozen });
  loss(list, tokens, lossVocab(m, p));
}

/** The optimizer over the rank's dense and expert parameters; ZeRO leaves each replica its share of either. */
function updates(m: Model, p: Plan, s: Stage, list: OperatorList): void {
  const held = stageParameters(m, p, s);
  const share = (n: number, replicas: number): number =>
    p.zero >= 1 ? Math.ceil(n / replicas) : n;
  const own =
    share(held.trainable - held.trainableExperts, p.dp * p.cp) +
    share(held.trainableExperts, expertReplicas(p));
  if (own > 0) optimizer(list, own);
}

/**
 * Bytes of one microbatch's activation that a rank sends to the next stage: all of it, or its part
 * where sequence parallelism or scatter/gather splits it over tp; where pipelines differ, leaders send all.
 */
export function boundaryBytes(m: Model, p: Plan): number {
  const parts = p.pipelines === undefined && (p.sequenceParallel || p.scatterGather) ? p.tp : 1;
  const split = p.cp * parts;
  const element = p.precision === "fp32" ? 4 : 2;
  return (p.microbatch * p.sequence * m.hidden * element) / split;
}
