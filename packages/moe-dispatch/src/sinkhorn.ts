/**
 * Sinkhorn routing (S-BASE, arXiv:2202.01169; Megatron-LM `sinkhorn`): exp(logits) is scaled by
 * rows and columns until every token and every expert has an equal share, and tokens choose from
 * the balanced matrix. The balancing has no gradient; weights come from the logits as they are.
 */
import { exp } from "./exp.ts";
import { route } from "./route.ts";
import { type Floats, type Routing, floatsLike, requireRow, tokensOf } from "./routing.ts";
import { requireInteger, requireLength, requireNumber } from "./shape.ts";
import { selectTopK } from "./top-k.ts";

/** A Sinkhorn router. */
export interface SinkhornOptions {
  readonly experts: number;
  readonly topK: number;
  /** Stops when the column factors move by less than this on average; default 10⁻⁴. */
  readonly tolerance?: number;
  /** Most rounds; default 100. */
  readonly rounds?: number;
  /** [T] 1 for a padding token, which takes no share. */
  readonly padding?: Uint8Array;
}

const epsilon = 1e-8;

/**
 * The balanced matrix [T, E]: rows of real tokens sum to about 1/T, columns to 1/E. A logit of −∞ masks
 * an expert; NaN and +∞ throw.
 */
export function sinkhorn(logits: Floats, o: Omit<SinkhornOptions, "topK">): Floats {
  const { experts, padding } = o;
  const tokens = tokensOf(logits, experts);
  const rounds = o.rounds ?? 100;
  const tolerance = o.tolerance ?? 1e-4;
  requireInteger("rounds", rounds, 1);
  requireNumber("tolerance", tolerance, 0);
  if (padding !== undefined) requireLength("padding", padding, tokens, `${tokens} tokens`);
  const open = (t: number): boolean => padding === undefined || padding[t] === 0;
  let real = 0;
  const costs = new Float64Array(logits.length);
  for (let t = 0; t < tokens; t++) {
    if (!open(t)) continue;
    real++;
    const row = t * experts;
    // One that is none would spread over all tokens by way of the columns.
    requireRow(logits, row, experts);
    let largest = -Infinity;
    for (let e = row; e < row + experts; e++) largest = Math.max(largest, logits[e]!);
    // A factor per row is absorbed by the row scaling, so that large logits do not overflow.
    if (largest === -Infinity) continue;
    for (let e = row; e < row + experts; e++) costs[e] = exp(logits[e]! - largest);
  }

  const rows = new Float64Array(tokens);
  const columns = new Float64Array(experts).fill(1);
  const sums = new Float64Array(experts);
  for (let round = 0; round < rounds; round++) {
    sums.fill(0);
    for (let t = 0; t < tokens; t++) {
      if (!open(t)) continue;
      const row = t * experts;
      let sum = 0;
      for (let e = 0; e < experts; e++) sum += columns[e]! * costs[row + e]!;
      const d = 1 / (real * (sum + epsilon));
      rows[t] = d;
      for (let e = 0; e < experts; e++) sums[e]! += d * costs[row + e]!;
    }
    let moved = 0;
    for (let e = 0; e < experts; e++) {
      const d = 1 / (experts * (sums[e]! + epsilon));
      moved += Math.abs(d - columns[e]!);
      columns[e] = d;
    }
    if (moved / experts <= tolerance) break;
  }

  const balanced = floatsLike(logits, logits.length);
  for (let t = 0; t < tokens; t++) {
    for (let e = 0; e < experts; e++) {
      balanced[t * experts + e] = rows[t]! * costs[t * experts + e]! * columns[e]!;
    }
  }
  return balanced;
}

/**
 * Routes by the balanced matrix. Weights as in Megatron-LM: sigmoid of the logit for top-1, softmax
 * over all experts otherwise; gradient by `routeGradient` with the same scoring, not normalised.
 */
export function sinkhornRoute(logits: Floats, o: SinkhornOptions): Routing {
  const { experts, topK, padding } = o;
  const tokens = tokensOf(logits, experts);
  requireInteger("topK", topK, 1, experts);
  const balanced = sinkhorn(logits, o);
  const replay = new Int32Array(tokens * topK);
  const kept = new Float64Array(topK);
  for (let t = 0; t < tokens; t++) {
    selectTopK(balanced, t * experts, experts, topK, replay, t * topK, kept);
    // A masked expert is no choice; one whose share is too small for its precision is the last.
    for (let j = t * topK; j < (t + 1) * topK; j++) {
      if (logits[t * experts + replay[j]!] === -Infinity) replay[j] = -1;
    }
  }
  return route(logits, {
    experts,
    topK,
    scoring: topK === 1 ? "sigmoid" : "softmax-before",
    normalize: false,
    replay,
    ...(padding === undefined ? {} : { padding }),
  });
}
