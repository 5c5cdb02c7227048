/**
 * FLOPs per token by convention: sources count differently, so a utilisation says which it means.
 * One multiply and one add are two; backward counts twice forward, without the weight gradient of
 * what is frozen.
 */
import { TriremeError, type Flops, nearestName } from "@trireme/core";
import { pairs } from "./attention-operators.ts";
import { adapterParameters } from "./adapter.ts";
import { decoderTokens, encoderMatrices, projectorMatrices, trainsEncoder } from "./encoder.ts";
import { type LayerForm, countForms, layerFormAt, layerForms } from "./layer-form.ts";
import type { Model } from "./model.ts";
import { contextWidth, parameters, scanElementwise } from "./parameters.ts";
import type { Plan } from "./plan.ts";
import { isScan } from "./scan-widths.ts";
import { scanFlops } from "./scan-flops.ts";

/** What a convention counts. */
export interface FlopRule {
  /**
   * Every pair of query and key, half of them, or those that mask, window and documents leave. Scans count as their
   * recurrence (Megatron-LM: 7 for each number of a state-space layer's state, 8 of a delta net's), by "exact" as the
   * products of their chunks.
   */
  readonly attention: "full" | "half" | "exact";
  /** All parameters that a token meets, or matrices alone: no norm, bias, router or adapter's gate. */
  readonly parameters: "all" | "matrices";
  /** The input embedding counts as if it multiplied (a tied one does, as the head, in any case). */
  readonly embedding: boolean;
  /** The output head counts. */
  readonly logits: boolean;
  /** Layers are computed once more for backward. */
  readonly recompute: boolean;
}

/**
 * - `model-full`: 6N + 12Las, all parameters that multiply something (an untied input embedding does
 *   not), the whole score matrix, no recomputation: MegaScale's baseline, Megatron-LM since 2022, torchtitan.
 * - `model-causal`: the same with half the score matrix: Megatron-Bridge, Megatron-LM of today.
 * - `model-embedded`: `model-full` with both embeddings counted: llm-foundry, Aleph Alpha.
 * - `matrix-full`, `matrix-causal`: matrices alone, neither router nor norms; the latter is MegaScale-MoE's.
 * - `exact`: matrices, and the pairs of query and key that mask, window and documents leave.
 * - `hardware`: full recomputation and the whole score matrix: SC'21's 96BsLh²(1 + s/6h + V/16Lh).
 */
export type FlopConvention =
  | "model-full"
  | "model-causal"
  | "model-embedded"
  | "matrix-full"
  | "matrix-causal"
  | "exact"
  | "hardware";

const model: FlopRule = {
  attention: "full",
  parameters: "all",
  embedding: false,
  logits: true,
  recompute: false,
};
const matrix: FlopRule = { ...model, parameters: "matrices" };

/** The named conventions. */
export const flopConventions: Readonly<Record<FlopConvention, FlopRule>> = {
  "model-full": model,
  "model-causal": { ...model, attention: "half" },
  "model-embedded": { ...model, embedding: true },
  "matrix-full": matrix,
  "matrix-causal": { ...matrix, attention: "half" },
  exact: { ...matrix, attention: "exact" },
  hardware: { ...matrix, recompute: true },
};

/**
 * FLOPs of one token, forward and backward, in a sequence of `p.sequence` tokens, by a named convention
 * or a rule of one's own. Throws TriremeError "FLOPS" with the nearest name for an unknown convention.
 */
export function modelFlops(
  m: Model,
  p: Pick<Plan, "sequence" | "document">,
  convention: FlopConvention | FlopRule = "model-full",
): Flops {
  const rule = typeof convention === "string" ? named(convention) : convention;
  const forms = layerForms(m);
  const counts = countForms(m, 0, m.layers);
  const tables = m.vocab * m.hidden;
  const heads = 1 + m.prediction;
  const inLayers = multiplied(m, rule.parameters);
  const logits = rule.logits ? heads * tables : 0;
  const embedding = rule.embedding && !m.tied ? tables : 0;
  // Forward products with the keys and with the values, and scans.
  let attention = 0;
  const last = layerFormAt(m, m.layers);
  for (const [i, form] of forms.entries()) {
    const layers = counts[i]! + (i === last ? m.prediction : 0);
    if (form.mixer === "none") continue;
    if (isScan(form.mixer)) {
      attention += layers * scanFlops(m, form.mixer, p.sequence, rule.attention === "exact");
      continue;
    }
    const window = form.windowed ? m.window?.size : undefined;
    const perToken = keysPerToken(m, p, window, rule.attention);
    attention += layers * 2 * perToken * (m.heads * m.headDim + contextWidth(m));
  }
  const backward = m.adapter === undefined ? 2 : 1;
  const passes = 1 + backward;
  const again = rule.recompute ? 1 : 0;
  const adapters =
    rule.parameters === "all" || m.adapter !== undefined
      ? m.layers * adapterParameters(m).total
      : 0;
  return (
    2 * (passes + again) * inLayers +
    2 * passes * (logits + embedding) +
    2 * (3 + again) * adapters +
    (3 + again) * attention +
    encoderFlops(m, p.sequence)
  );
}

function named(convention: FlopConvention): FlopRule {
  if (Object.hasOwn(flopConventions, convention)) return flopConventions[convention];
  const known = Object.keys(flopConventions);
  const near = nearestName(convention, known);
  throw new TriremeError(
    "FLOPS",
    `unknown FLOP convention "${convention}"; ${near === undefined ? `known: ${known.join(", ")}` : `did you mean "${near}"?`}`,
  );
}

function keysPerToken(
  m: Model,
  { sequence, document = sequence }: Pick<Plan, "sequence" | "document">,
  window: number | undefined,
  attention: FlopRule["attention"],
): number {
  if (attention === "exact") {
    const own = { sequence: document, causal: m.causal };
    return pairs({ ...own, ...(window === undefined ? {} : { window }) }) / document;
  }
  const seen = Math.min(sequence, window ?? sequence);
  return attention === "half" && m.causal ? seen / 2 : seen;
}

/** Parameters of all layers that one token is multiplied by. */
function multiplied(m: Model, which: FlopRule["parameters"]): number {
  const counts = parameters(m);
  const tables = (m.tied ? 1 : 2) * m.vocab * m.hidden;
  const all = counts.active - counts.encoders - counts.adapters - tables;
  return which === "all" ? all : all - elementwise(m);
}

/** Of these, what is no matrix or is left out of counts by matrices: norms, biases, position tables, routers. */
function elementwise(m: Model): number {
  const bare: Model = {
    ...m,
    bias: false,
    qkvBias: false,
    outputBias: false,
    headBias: false,
    normBias: false,
    normWeights: false,
    attentionSinks: false,
    qkNorm: "none",
    position: "none",
    segments: 0,
    pooler: false,
    ...(m.experts === undefined
      ? {}
      : {
          experts: { ...m.experts, routerBias: false, selectionBias: false, sharedGate: false },
        }),
  };
  const routers =
    m.experts === undefined ? 0 : m.hidden * m.experts.count * layersWith(m, (f) => f.experts);
  const latents = (m.latent?.queryRank ?? 0) + (m.latent?.keyValueRank ?? 0);
  const scans = (["mamba", "delta-net"] as const).reduce((n, scan) => {
    const layers = layersWith(bare, (f) => f.mixer === scan);
    return layers === 0 ? n : n + layers * scanElementwise(bare, scan);
  }, 0);
  return (
    parameters(m).active -
    parameters(bare).active +
    routers +
    scans +
    latents * layersWith(m, (f) => f.mixer === "attention")
  );
}

/** Layers of some forms, prediction modules' among them. */
function layersWith(m: Model, of: (form: LayerForm) => boolean): number {
  const counts = countForms(m, 0, m.layers);
  const last = layerFormAt(m, m.layers);
  return layerForms(m).reduce(
    (n, form, i) => n + (of(form) ? counts[i]! + (i === last ? m.prediction : 0) : 0),
    0,
  );
}

/** Encoders' work for a sample, matrices alone, spread over the decoder's tokens. */
function encoderFlops(m: Model, sequence: number): Flops {
  let flops = 0;
  for (const e of m.encoders) {
    const attention = 4 * e.layers * e.hidden * e.span;
    const passes = trainsEncoder(m, e) ? 3 : 1;
    flops += passes * e.tokens * (2 * encoderMatrices(e) + attention);
    flops += 2 * (m.adapter === undefined ? 3 : 1) * decoderTokens(e) * projectorMatrices(m, e);
  }
  return flops / sequence;
}
