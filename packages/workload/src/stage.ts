/** Stages: consecutive layers, `pp × vpp` of them, dealt to the pipeline ranks in turn (SC'21 §2.2). */
import { TriremeError } from "@trireme/core";
import { adapterParameters } from "./adapter.ts";
import { encoderParameters } from "./encoder.ts";
import { countForms, layerFormAt, layerForms } from "./layer-form.ts";
import type { Model } from "./model.ts";
import {
  finalParameters,
  layerParameters,
  predictionParameters,
  tableParameters,
} from "./parameters.ts";
import { type PipelineStage, pipelineOf } from "./pipelines.ts";
import type { Plan } from "./plan.ts";

/** A part of the model that one pipeline rank runs as a unit. */
export interface Stage {
  /** Place in model order, 0 to pp × vpp − 1. */
  readonly stage: number;
  /** Index of its first layer in the model. */
  readonly firstLayer: number;
  readonly layers: number;
  /** It encodes images and sounds, and looks the tokens up, unless the vocabulary is split over the ranks. */
  readonly embedding: boolean;
  /** It computes prediction modules, final norm, logits and loss, the latter two unless the vocabulary is split. */
  readonly head: boolean;
  /** Ranks that share it, where pipelines differ; left out, the plan's tp. */
  readonly tp?: number;
  /** Its rank has a part of a vocabulary that is split over the pipeline ranks: with the first chunk of each. */
  readonly vocabulary?: true;
}

/**
 * The stages of a plan in model order. Without `stageLayers` the counts differ by one at most, and
 * the middle gets the larger ones, since the ends hold embedding and head as well (Llama 3 405B: 126
 * layers on 16 ranks leave 7 on the first and on the last). An end that counts as a layer is spread with them: 126
 * layers and both ends on 128 stages leave none on the first and on the last. Where pipelines differ, those of one of
 * them.
 * Throws TriremeError "PLAN" where they differ and none is named.
 */
export function stages(m: Model, p: Plan, pipeline?: number): readonly Stage[] {
  if (p.pipelines !== undefined) return ownStages(pipelineOf(p.pipelines, pipeline));
  const count = p.pp * p.vpp;
  const [first, last] = [p.accountForEmbedding ? 1 : 0, p.accountForLoss ? 1 : 0];
  const units = m.layers + first + last;
  const base = Math.floor(units / count);
  const larger = units % count;
  const firstLarger = Math.floor((count - larger) / 2);
  const result: Stage[] = [];
  let firstLayer = 0;
  for (let stage = 0; stage < count; stage++) {
    const extra = stage >= firstLarger && stage < firstLarger + larger ? 1 : 0;
    const [embedding, head] = [stage === 0, stage === count - 1];
    const counted = (embedding ? first : 0) + (head ? last : 0);
    const layers = p.stageLayers?.[stage] ?? base + extra - counted;
    const split = p.vocabulary !== undefined && stage < p.pp;
    const own = { stage, firstLayer, layers, embedding, head };
    result.push(split ? { ...own, vocabulary: true } : own);
    firstLayer += layers;
  }
  return result;
}

function ownStages(pipeline: readonly PipelineStage[]): readonly Stage[] {
  let firstLayer = 0;
  return pipeline.map(({ tp, layers }, stage) => {
    const own = { stage, firstLayer, layers, embedding: stage === 0, tp };
    firstLayer += layers;
    return { ...own, head: stage === pipeline.length - 1 };
  });
}

/**
 * Every pipeline's stages in the form that `topology`'s staged mesh takes, also of a plan whose pipelines
 * are alike. Throws TriremeError "PLAN" for chunks and context parallelism, which a staged mesh has not.
 */
export function stagedAxes(
  m: Model,
  p: Plan,
): readonly (readonly { readonly width: number; readonly layers: number }[])[] {
  for (const key of ["vpp", "cp"] as const) {
    if (p[key] === 1) continue;
    throw new TriremeError(
      "PLAN",
      `a staged mesh has no ${key}, and the plan's is ${p[key]}; use axes`,
    );
  }
  return Array.from({ length: p.dp }, (_, pipeline) =>
    stages(m, p, pipeline).map(({ tp, layers }) => ({ width: tp ?? p.tp, layers })),
  );
}

/** The plan as the ranks of a stage see it: with the width that it has where pipelines differ. */
export function stagePlan(p: Plan, s: Stage): Plan {
  if (s.tp === undefined || s.tp === p.tp) return p;
  return { ...p, tp: s.tp };
}

/** Schedules whose second chunks run back from the last rank to the first. */
const vShaped: ReadonlySet<string> = new Set(["zb-v", "v-half", "v-min", "dualpipe-v"]);
/** Schedules that run a second copy of the model's stages from the last rank to the first. */
const bidirectional: ReadonlySet<string> = new Set(["dualpipe", "chimera"]);

/** Copies of the model's stages that a pipeline holds: 2 where microbatches run both ways. */
export function stageCopies(p: Pick<Plan, "schedule">): 1 | 2 {
  return bidirectional.has(p.schedule) ? 2 : 1;
}

/**
 * The stages on a pipeline rank, by their place in model order: dealt in turn; there and back in V-shaped schedules
 * (Qi et al., arXiv 2405.15362); its own and its mirror's in bidirectional ones (Chimera, arXiv 2107.06925).
 */
export function stagesOnRank(
  p: Pick<Plan, "pp" | "vpp" | "schedule">,
  rank: number,
): readonly number[] {
  const mirror = p.pp - 1 - rank;
  if (bidirectional.has(p.schedule)) return [rank, mirror];
  return Array.from({ length: p.vpp }, (_, chunk) =>
    vShaped.has(p.schedule) && chunk % 2 === 1 ? chunk * p.pp + mirror : chunk * p.pp + rank,
  );
}

/** Vocabulary rows of one rank: the vocabulary is padded to a multiple of its parts, the last holds the padding. */
export function vocabShard(
  m: Model,
  p: Pick<Plan, "tp"> & Partial<Pick<Plan, "pp" | "vocabulary">>,
): number {
  return Math.ceil(m.vocab / (p.vocabulary === undefined ? p.tp : p.tp * (p.pp ?? 1)));
}

/** Width of the logits that one rank computes its loss over. */
export function lossVocab(
  m: Model,
  p: Pick<Plan, "tp" | "vocabParallelLoss"> & Partial<Pick<Plan, "pp" | "vocabulary">>,
): number {
  return p.vocabParallelLoss ? vocabShard(m, p) : vocabShard(m, p) * p.tp;
}

/** Parameters of a stage on one rank. */
export interface StageParameters {
  readonly total: number;
  /** Split over tp: this rank's share. */
  readonly sharded: number;
  /** The same on every rank of the tp group. */
  readonly replicated: number;
  /** Of routed experts: this rank's share over ep and etp. */
  readonly experts: number;
  /** What training changes: all, or adapters alone. Of them `trainableExperts` are routed experts'. */
  readonly trainable: number;
  readonly trainableExperts: number;
}

/**
 * Parameters that one rank of the stage holds, before ZeRO. A tied head on another stage than the
 * embedding is a copy of it, kept equal by a gradient all-reduce between the two; so is the table
 * that prediction modules look tokens up in.
 */
export function stageParameters(m: Model, plan: Plan, s: Stage): StageParameters {
  const p = stagePlan(plan, s);
  const forms = layerForms(m);
  const counts = countForms(m, s.firstLayer, s.layers);
  let split = 0;
  let replicated = (s.embedding ? tableParameters(m) : 0) + (s.head ? finalParameters(m) : 0);
  let experts = 0;
  const add = (form: number, layers: number): void => {
    const layer = layerParameters(m, forms[form]!);
    split += layers * layer.sharded;
    replicated += layers * layer.replicated;
    experts += (layers * layer.experts) / (p.ep * p.etp);
  };
  for (const [form, layers] of counts.entries()) if (layers > 0) add(form, layers);
  if (s.head && m.prediction > 0) {
    add(layerFormAt(m, m.layers), m.prediction);
    const { hidden } = m;
    split += m.prediction * 2 * hidden * hidden;
    replicated += m.prediction * (predictionParameters(m) - 2 * hidden * hidden);
  }
  let frozen = 0;
  if (s.embedding) {
    for (const e of m.encoders) {
      const own = encoderParameters(m, e);
      split += own.sharded;
      replicated += own.replicated;
      if (e.frozen) frozen += own.trunk - own.sharded + own.sharded / p.tp;
    }
  }
  const shard = vocabShard(m, p);
  const logits = p.vocabulary === undefined ? s.head : s.vocabulary === true;
  const headBias = logits && m.headBias ? shard : 0;
  const adapters = adapterParameters(m);
  const adapted = s.layers * (adapters.sharded / p.tp + adapters.replicated);
  const sharded =
    split / p.tp +
    tables(m, p, s) * shard * m.hidden +
    headBias +
    (s.layers * adapters.sharded) / p.tp;
  replicated += s.layers * adapters.replicated;
  const total = sharded + replicated + experts;
  const adapterOnly = m.adapter !== undefined;
  return {
    total,
    sharded,
    replicated,
    experts,
    trainable: adapterOnly ? adapted : total - frozen,
    trainableExperts: adapterOnly ? 0 : experts,
  };
}

/** Copies of a [vocab, hidden] table that the stage holds. */
function tables(m: Model, p: Plan, s: Stage): number {
  if (p.vocabulary !== undefined) return s.vocabulary === true ? (m.tied ? 1 : 2) : 0;
  const head = s.head && !(m.tied && s.embedding);
  const predicted = s.head && m.prediction > 0 && !m.tied && !s.embedding;
  return (s.embedding ? 1 : 0) + (head ? 1 : 0) + (predicted ? 1 : 0);
}
