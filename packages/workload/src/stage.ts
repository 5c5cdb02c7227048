/** Stages: consecutive layers, `pp × vpp` of them, dealt to the pipeline ranks in turn (SC'21 §2.2). */
import type { Model } from "./model.ts";
import { normParameters, layerParameters, positionParameters } from "./parameters.ts";
import type { Plan } from "./plan.ts";

/** A part of the model that one pipeline rank runs as a unit; it sits on rank `stage mod pp`. */
export interface Stage {
  /** Place in model order, 0 to pp × vpp − 1. */
  readonly stage: number;
  /** Index of its first layer in the model. */
  readonly firstLayer: number;
  readonly layers: number;
  /** It looks the tokens up. */
  readonly embedding: boolean;
  /** It computes final norm, logits and loss. */
  readonly head: boolean;
}

/**
 * The stages of a plan in model order. Without `stageLayers` the counts differ by one at most, and
 * the middle gets the larger ones, since the ends hold embedding and head as well (Llama 3 405B: 126
 * layers on 16 ranks leave 7 on the first and on the last).
 */
export function stages(m: Model, p: Plan): readonly Stage[] {
  const count = p.pp * p.vpp;
  const base = Math.floor(m.layers / count);
  const larger = m.layers % count;
  const firstLarger = Math.floor((count - larger) / 2);
  const result: Stage[] = [];
  let firstLayer = 0;
  for (let stage = 0; stage < count; stage++) {
    const extra = stage >= firstLarger && stage < firstLarger + larger ? 1 : 0;
    const layers = p.stageLayers?.[stage] ?? base + extra;
    result.push({ stage, firstLayer, layers, embedding: stage === 0, head: stage === count - 1 });
    firstLayer += layers;
  }
  return result;
}

/** Vocabulary rows of one rank: the vocabulary is padded to a multiple of tp, the last shard holds the padding. */
export function vocabShard(m: Model, p: Pick<Plan, "tp">): number {
  return Math.ceil(m.vocab / p.tp);
}

/** Width of the logits that one rank computes its loss over. */
export function lossVocab(m: Model, p: Pick<Plan, "tp" | "vocabParallelLoss">): number {
  return p.vocabParallelLoss ? vocabShard(m, p) : vocabShard(m, p) * p.tp;
}

/** Parameters of a stage on one rank. */
export interface StageParameters {
  readonly total: number;
  /** Split over tp: this rank's share. */
  readonly sharded: number;
  /** The same on every rank of the tp group. */
  readonly replicated: number;
}

/**
 * Parameters that one rank of the stage holds, before ZeRO. A tied head on another stage than the
 * embedding is a copy of it, kept equal by a gradient all-reduce between the two.
 */
export function stageParameters(m: Model, p: Plan, s: Stage): StageParameters {
  const layer = layerParameters(m);
  const table = vocabShard(m, p) * m.hidden;
  const tables = (s.embedding ? 1 : 0) + (s.head && !(m.tied && s.embedding) ? 1 : 0);
  const sharded = (s.layers * layer.sharded) / p.tp + tables * table;
  const replicated =
    s.layers * layer.replicated +
    (s.embedding ? positionParameters(m) : 0) +
    (s.head ? normParameters(m) : 0);
  return { total: sharded + replicated, sharded, replicated };
}
