/**
 * Token-choice routing: every token takes the `topK` experts it scores highest. One function for
 * the forms in use, because they differ in three independent choices: how logits become scores
 * (softmax before or after the choice, sigmoid), what is added for the choice alone (selection
 * bias), and which experts are open (groups, masks, replayed choices).
 *
 * Sources: Megatron-LM `topk_routing_with_score_function`; DeepSeek-V3 (arXiv:2412.19437) §2.1.2.
 */
import { exp } from "./exp.ts";
import { TriremeError } from "@trireme/core";
import { type GroupLimit, checkGroupLimit, createGroupMask } from "./group-limit.ts";
import {
  type Floats,
  type Routing,
  floatsLike,
  notFinite,
  requireRow,
  tokensOf,
  unknownExpert,
} from "./routing.ts";
import { requireInteger, requireLength, requireNumber } from "./shape.ts";
import { selectTopK } from "./top-k.ts";

/**
 * How logits become weights. `softmax-after`: softmax over the k chosen logits. `softmax-before`:
 * softmax over all experts, the k largest taken as they are. `sigmoid`: each expert by itself.
 */
export type Scoring = "softmax-after" | "softmax-before" | "sigmoid";

/** The part of a router that decides the weights of chosen experts. */
export interface WeightOptions {
  readonly experts: number;
  readonly scoring: Scoring;
  /** Divides a token's weights by their sum; default true for sigmoid, false for softmax-before. */
  readonly normalize?: boolean;
  /** Factor on all weights (DeepSeek's routed scaling factor); default 1. */
  readonly scale?: number;
}

/** A router. */
export interface RouterOptions extends WeightOptions {
  readonly topK: number;
  /** [E] added to the scores for the choice only, never to the weights; see `updateSelectionBias`. */
  readonly bias?: Floats;
  readonly groups?: GroupLimit;
  /** [T] 1 for a padding token, which gets no expert. */
  readonly padding?: Uint8Array;
  /** [T, k] choices of an earlier pass, taken instead of choosing (router replay). */
  readonly replay?: Int32Array;
}

/** DeepSeek's guard against a sum of zero. */
export const normalizeEpsilon = 1e-20;

/** Whether the weights of a token are divided by their sum. */
export function normalizes(o: WeightOptions): boolean {
  return o.normalize ?? o.scoring !== "softmax-before";
}

/**
 * Routes `logits` [T, E]; the weights have the precision of the logits. Choices are in descending
 * order of score, equal scores by lowest index. A logit of −∞ masks an expert; NaN and +∞ throw.
 * T = 0 gives an empty routing.
 */
export function route(logits: Floats, o: RouterOptions): Routing {
  const { experts, topK, scoring, bias, padding, replay } = o;
  const tokens = tokensOf(logits, experts);
  requireInteger("topK", topK, 1, experts);
  const scale = o.scale ?? 1;
  requireNumber("scale", scale, 0);
  const best = o.groups === undefined ? 0 : checkGroupLimit(o.groups, experts, topK);
  if (bias !== undefined) {
    requireLength("bias", bias, experts, `${experts} experts`);
    const odd = bias.findIndex((b) => !Number.isFinite(b));
    if (odd >= 0) {
      throw new TriremeError(
        "MOE_NOT_FINITE",
        `bias of expert ${odd} is ${bias[odd]}; it must be finite, such as 0`,
      );
    }
    if (scoring === "softmax-after") {
      throw new TriremeError(
        "MOE_BIAS",
        `a selection bias acts on scores in 0..1, but scoring is "softmax-after"; use "sigmoid" or "softmax-before"`,
      );
    }
  }
  if (padding !== undefined) requireLength("padding", padding, tokens, `${tokens} tokens`);
  if (replay !== undefined) {
    requireLength("replay", replay, tokens * topK, `${tokens} tokens x top-${topK}`);
  }

  const expertIds = new Int32Array(tokens * topK);
  const weights = floatsLike(logits, tokens * topK);
  const kept = new Float64Array(topK);
  const scores = new Float64Array(experts);
  const mask = o.groups === undefined ? undefined : createGroupMask(experts, o.groups, best);
  // Softmax and sigmoid keep the order of the logits: scores are needed only to add or to sum them.
  const direct = bias === undefined && mask === undefined;
  const normalize = normalizes(o);

  for (let t = 0; t < tokens; t++) {
    const row = t * experts;
    const at = t * topK;
    if (padding !== undefined && padding[t] !== 0) {
      expertIds.fill(-1, at, at + topK);
      continue;
    }
    let total = 0;
    if (replay !== undefined) {
      // Choosing looks at every logit; here only this does.
      requireRow(logits, row, experts);
      copyChoices(replay, expertIds, at, topK, experts);
    } else if (direct) {
      const found = selectTopK(logits, row, experts, topK, expertIds, at, kept);
      if (found < 0) throw notFinite(logits, row, experts);
    } else {
      total = scoreRow(logits, row, scores, scoring);
      if (bias !== undefined) for (let e = 0; e < experts; e++) scores[e]! += bias[e]!;
      mask?.(scores);
      const found = selectTopK(scores, 0, experts, topK, expertIds, at, kept);
      if (found < 0) throw notFinite(logits, row, experts);
    }
    if (
      !weigh(logits, row, experts, scoring, normalize, scale, expertIds, at, weights, kept, total)
    ) {
      throw notFinite(logits, row, experts);
    }
  }
  return { tokens, experts, topK, expertIds, weights };
}

/** Scores of one row, −∞ for masked experts; gives the sum of exponentials of a softmax. */
function scoreRow(logits: Floats, row: number, scores: Float64Array, scoring: Scoring): number {
  const experts = scores.length;
  let largest = -Infinity;
  for (let e = 0; e < experts; e++) {
    const l = logits[row + e]!;
    if (!(l < Infinity)) throw notFinite(logits, row, experts);
    if (l > largest) largest = l;
    scores[e] = scoring === "sigmoid" && l !== -Infinity ? 1 / (1 + exp(-l)) : l;
  }
  if (scoring !== "softmax-before" || largest === -Infinity) return 0;
  const total = rowTotal(logits, row, experts, largest);
  const factor = 1 / total;
  for (let e = 0; e < experts; e++) {
    const l = scores[e]!;
    scores[e] = l === -Infinity ? l : exp(l - largest) * factor;
  }
  return total;
}

/** Writes the weights of one token's chosen experts; false when a logit it needs is not finite. */
function weigh(
  logits: Floats,
  row: number,
  experts: number,
  scoring: Scoring,
  normalize: boolean,
  scale: number,
  ids: Int32Array,
  at: number,
  weights: Floats,
  scratch: Float64Array,
  known: number,
): boolean {
  const topK = scratch.length;
  const whole = scoring === "softmax-before" && !normalize;
  let largest = 0;
  if (whole) largest = rowMax(logits, row, experts);
  else if (scoring !== "sigmoid") largest = chosenMax(logits, row, ids, at, topK);
  // Nothing but masked experts: no weights.
  if (largest === -Infinity) return true;
  let total = 0;
  for (let j = 0; j < topK; j++) {
    const e = ids[at + j]!;
    if (e === -1) continue;
    const l = logits[row + e]!;
    const x = scoring === "sigmoid" ? 1 / (1 + exp(-l)) : exp(l - largest);
    scratch[j] = x;
    total += x;
  }
  // A softmax over the chosen sums to one by itself: normalised softmax-before is the same numbers.
  if (whole) total = known > 0 ? known : rowTotal(logits, row, experts, largest);
  else if (scoring === "sigmoid") total = normalize ? total + normalizeEpsilon : 1;
  const factor = scale / total;
  for (let j = 0; j < topK; j++) if (ids[at + j] !== -1) weights[at + j] = scratch[j]! * factor;
  return !Number.isNaN(total);
}

function rowMax(logits: Floats, row: number, experts: number): number {
  let largest = -Infinity;
  for (let e = row; e < row + experts; e++) if (logits[e]! > largest) largest = logits[e]!;
  return largest;
}

function rowTotal(logits: Floats, row: number, experts: number, largest: number): number {
  let total = 0;
  for (let e = row; e < row + experts; e++) total += exp(logits[e]! - largest);
  return total;
}

function chosenMax(logits: Floats, row: number, ids: Int32Array, at: number, k: number): number {
  let largest = -Infinity;
  for (let j = at; j < at + k; j++) {
    const e = ids[j]!;
    if (e !== -1 && logits[row + e]! > largest) largest = logits[row + e]!;
  }
  return largest;
}

function copyChoices(
  from: Int32Array,
  to: Int32Array,
  at: number,
  k: number,
  experts: number,
): void {
  for (let j = at; j < at + k; j++) {
    const e = from[j]!;
    if (e < -1 || e >= experts) throw unknownExpert(j, e, experts);
    to[j] = e;
  }
}
