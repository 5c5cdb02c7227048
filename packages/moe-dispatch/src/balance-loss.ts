/**
 * Auxiliary losses that spread tokens over experts. All are one formula,
 *
 *   coefficient · D / (k·T²) · Σ_d (Σ_t p_td) · n_d,
 *
 * with p the scores of token t, n the tokens that chose, and d an expert (Switch arXiv:2101.03961
 * eq. 4, GShard) or a group of experts on one device (DeepSeek-V2 §2.2.2, MegaScale-MoE). Over one
 * batch it is the Switch loss, over one sequence DeepSeek-V3's complementary loss, with counts of
 * the whole batch the global-batch loss. Balanced counts give `coefficient`. Counts have no
 * gradient; the scores carry it.
 */
import { TriremeError } from "@trireme/core";
import { sigmoidRow, softmaxRow } from "./scores.ts";
import { type Floats, type Routing, checkRouting, floatsLike } from "./routing.ts";
import { requireDivisible, requireInteger, requireLength, requireNumber } from "./shape.ts";

/** A loss, and its gradient with respect to the logits [T, E]. */
export interface LossAndGradient {
  readonly value: number;
  readonly gradient: Floats;
}

/** What the balance is taken over. */
export interface BalanceLossOptions {
  readonly coefficient: number;
  /** Scores: softmax, or sigmoids divided by their sum. Default softmax. */
  readonly scoring?: "softmax" | "sigmoid";
  /** Groups of consecutive experts balanced as one, such as those of a device. Default: each expert. */
  readonly deviceGroups?: number;
  /** Balances every sequence by itself and averages: the token after the last of each sequence. */
  readonly sequenceEnds?: Int32Array;
  /**
   * The whole that these tokens are a shard of, so that the losses and gradients of the shards add
   * up to the whole's: for a global-batch loss its tokens (padding excluded) and tokens per expert;
   * for a sequence loss its number of sequences that hold a token.
   */
  readonly whole?:
    | { readonly tokens: number; readonly counts: ArrayLike<number> }
    | { readonly sequences: number };
  /** [T] 1 for a padding token: in no count, no mean and no gradient. */
  readonly padding?: Uint8Array;
}

/**
 * Balance loss of `routing`, taken before tokens are dropped. No tokens give 0. The value does not
 * depend on how a batch is cut into shards, if `whole` is given to each.
 */
export function balanceLoss(
  logits: Floats,
  routing: Routing,
  o: BalanceLossOptions,
): LossAndGradient {
  checkRouting(routing);
  const { tokens, experts, topK } = routing;
  requireLength("logits", logits, tokens * experts, `${tokens} tokens x ${experts} experts`);
  requireNumber("coefficient", o.coefficient, 0);
  const groups = o.deviceGroups ?? experts;
  requireInteger("deviceGroups", groups, 1, experts);
  requireDivisible("experts", experts, "device groups", groups);
  if (o.padding !== undefined) requireLength("padding", o.padding, tokens, `${tokens} tokens`);
  const ends = o.sequenceEnds ?? Int32Array.of(tokens);
  checkEnds(ends, tokens);
  checkWhole(o, experts);

  const gradient = floatsLike(logits, logits.length);
  if (topK === 0) return { value: 0, gradient };
  const score = o.scoring === "sigmoid" ? sigmoidRow : softmaxRow;
  const pulls = new Float64Array(experts);
  const p = new Float64Array(experts);
  const sequences = o.sequenceEnds === undefined ? 1 : countSequences(ends, o);
  let value = 0;
  let start = 0;
  for (const end of ends) {
    const scale = pullsOf(routing, start, end, groups, o, pulls);
    if (scale > 0) {
      const factor = (o.coefficient * groups * scale) / (topK * sequences);
      for (let e = 0; e < experts; e++) pulls[e]! *= factor;
      for (let t = start; t < end; t++) {
        if (o.padding !== undefined && o.padding[t] !== 0) continue;
        const row = t * experts;
        const total = score(logits, row, experts, p, 0);
        let mean = 0;
        for (let e = 0; e < experts; e++) mean += p[e]! * pulls[e]!;
        value += mean;
        for (let e = 0; e < experts; e++) {
          // dp_j/dl_e: softmax p_e(δ − p_j); sigmoid σ_e(1 − σ_e)(δ − p_j)/Σσ, with σ_e = p_e·Σσ.
          const slope = o.scoring === "sigmoid" ? p[e]! * (1 - p[e]! * total) : p[e]!;
          gradient[row + e] = slope * (pulls[e]! - mean);
        }
      }
    }
    start = end;
  }
  return { value, gradient };
}

/** Fills `pulls` [E] with the tokens of each expert's group; gives 1/T², 0 for no tokens. */
function pullsOf(
  routing: Routing,
  start: number,
  end: number,
  groups: number,
  o: BalanceLossOptions,
  pulls: Float64Array,
): number {
  const { experts, topK, expertIds } = routing;
  const size = experts / groups;
  const totals = new Float64Array(groups);
  let tokens = 0;
  if (o.whole !== undefined && "counts" in o.whole) {
    for (let e = 0; e < experts; e++) totals[Math.floor(e / size)]! += o.whole.counts[e]!;
    tokens = o.whole.tokens;
  } else {
    for (let t = start; t < end; t++) {
      if (o.padding !== undefined && o.padding[t] !== 0) continue;
      tokens++;
      for (let j = t * topK; j < (t + 1) * topK; j++) {
        const e = expertIds[j]!;
        if (e !== -1) totals[Math.floor(e / size)]!++;
      }
    }
  }
  for (let e = 0; e < experts; e++) pulls[e] = totals[Math.floor(e / size)]!;
  return tokens === 0 ? 0 : 1 / tokens / tokens;
}

/** Sequences that hold a token: those of padding alone would only weaken the mean. */
function countSequences(ends: Int32Array, o: BalanceLossOptions): number {
  if (o.whole !== undefined && "sequences" in o.whole) return o.whole.sequences;
  let sequences = 0;
  let start = 0;
  for (const end of ends) {
    let t = start;
    while (t < end && o.padding !== undefined && o.padding[t] !== 0) t++;
    if (t < end) sequences++;
    start = end;
  }
  return sequences;
}

function checkEnds(ends: Int32Array, tokens: number): void {
  let start = 0;
  for (const end of ends) {
    if (end < start) {
      throw new TriremeError("MOE_SEQUENCES", `sequence ends must not fall: ${end} after ${start}`);
    }
    start = end;
  }
  if (start !== tokens) {
    throw new TriremeError(
      "MOE_SEQUENCES",
      `the last sequence ends at ${start}, but there are ${tokens} tokens; it must end at ${tokens}`,
    );
  }
}

function checkWhole(o: BalanceLossOptions, experts: number): void {
  if (o.whole === undefined) return;
  const bySequence = o.sequenceEnds !== undefined;
  if ("sequences" in o.whole) {
    requireInteger("whole.sequences", o.whole.sequences, 1);
    if (bySequence) return;
  } else {
    requireInteger("whole.tokens", o.whole.tokens, 0);
    requireLength("whole.counts", o.whole.counts, experts, `${experts} experts`);
    if (!bySequence) return;
  }
  throw new TriremeError(
    "MOE_WHOLE",
    bySequence
      ? "a loss by sequence takes whole: { sequences }, not whole: { tokens, counts }"
      : "a loss over the batch takes whole: { tokens, counts }, not whole: { sequences }",
  );
}
