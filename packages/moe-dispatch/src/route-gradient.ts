/**
 * The gradient of the weights with respect to the logits, for fixed choices: choosing has no
 * gradient, and a selection bias acts on the choice alone.
 */
import { exp } from "./exp.ts";
import { type WeightOptions, normalizeEpsilon, normalizes } from "./route.ts";
import { type Floats, type Routing, checkRouting, floatsLike } from "./routing.ts";
import { requireLength } from "./shape.ts";

/**
 * Gradient of a loss with respect to `logits` [T, E], given its gradient with respect to
 * `routing.weights` [T, k]. Slots without an expert pass nothing. Also right for routings of
 * `expertChoice` (softmax-before, not normalised) and for replayed ones.
 *
 * @param into Gradient to add to, instead of a new array.
 */
export function routeGradient(
  logits: Floats,
  routing: Routing,
  weightsGradient: Floats,
  o: WeightOptions,
  into: Floats = floatsLike(logits, logits.length),
): Floats {
  checkRouting(routing);
  const { tokens, experts, topK, expertIds } = routing;
  requireLength("logits", logits, tokens * experts, `${tokens} tokens x ${experts} experts`);
  requireLength("weightsGradient", weightsGradient, tokens * topK, `${tokens} x top-${topK}`);
  requireLength("into", into, logits.length, `${tokens} tokens x ${experts} experts`);
  const scale = o.scale ?? 1;
  for (let t = 0; t < tokens; t++) {
    const row = t * experts;
    const at = t * topK;
    if (o.scoring === "sigmoid") {
      sigmoidRow(logits, row, expertIds, at, topK, weightsGradient, scale, normalizes(o), into);
    } else {
      const whole = o.scoring === "softmax-before" && !normalizes(o);
      softmaxRow(logits, row, experts, expertIds, at, topK, weightsGradient, scale, whole, into);
    }
  }
  return into;
}

/** w = scale·softmax over the chosen, or over all experts (`whole`). dl = p·(g − Σ p·g). */
function softmaxRow(
  logits: Floats,
  row: number,
  experts: number,
  ids: Int32Array,
  at: number,
  topK: number,
  gradient: Floats,
  scale: number,
  whole: boolean,
  into: Floats,
): void {
  let largest = -Infinity;
  let total = 0;
  if (whole) {
    for (let e = row; e < row + experts; e++) largest = Math.max(largest, logits[e]!);
    for (let e = row; e < row + experts; e++) total += exp(logits[e]! - largest);
  } else {
    for (let j = at; j < at + topK; j++) {
      if (ids[j] !== -1) largest = Math.max(largest, logits[row + ids[j]!]!);
    }
    for (let j = at; j < at + topK; j++) {
      if (ids[j] !== -1) total += exp(logits[row + ids[j]!]! - largest);
    }
  }
  if (total === 0 || Number.isNaN(total)) return;
  let mean = 0;
  for (let j = at; j < at + topK; j++) {
    const e = ids[j]!;
    if (e !== -1) mean += (exp(logits[row + e]! - largest) / total) * scale * gradient[j]!;
  }
  for (let j = at; j < at + topK; j++) {
    const e = ids[j]!;
    if (e === -1) continue;
    const p = exp(logits[row + e]! - largest) / total;
    into[row + e]! += p * (scale * gradient[j]! - (whole ? 0 : mean));
  }
  if (!whole) return;
  for (let e = row; e < row + experts; e++) {
    into[e]! -= (exp(logits[e]! - largest) / total) * mean;
  }
}

/** w = scale·σ, or scale·σ / (Σ σ + ε); dσ/dl = σ·(1 − σ). */
function sigmoidRow(
  logits: Floats,
  row: number,
  ids: Int32Array,
  at: number,
  topK: number,
  gradient: Floats,
  scale: number,
  normalize: boolean,
  into: Floats,
): void {
  let total = normalize ? normalizeEpsilon : 1;
  let mean = 0;
  if (normalize) {
    for (let j = at; j < at + topK; j++) {
      if (ids[j] !== -1) total += sigmoid(logits[row + ids[j]!]!);
    }
    for (let j = at; j < at + topK; j++) {
      if (ids[j] !== -1) mean += (sigmoid(logits[row + ids[j]!]!) / total) * gradient[j]!;
    }
  }
  for (let j = at; j < at + topK; j++) {
    const e = ids[j]!;
    if (e === -1) continue;
    const s = sigmoid(logits[row + e]!);
    into[row + e]! += ((scale * (gradient[j]! - mean)) / total) * s * (1 - s);
  }
}

function sigmoid(x: number): number {
  return 1 / (1 + exp(-x));
}
