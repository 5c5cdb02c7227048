/**
 * Carries a dispatch plan out on rows of `hidden` numbers, and its backward pass. Dispatch copies,
 * combine adds up; each is the transpose of the other, so the gradient of one is the other:
 *
 *   dispatch   y[row] = x[token]                dx[token] = Σ dy[row]
 *   combine    x[token] = Σ w[slot]·y[row]      dy[row] = w[slot]·dx[token],  dw[slot] = dx[token]·y[row]
 *
 * Slots are added in order of choice, so sums are the same whatever the number of ranks.
 */
import { TriremeError } from "@trireme/core";
import type { DispatchPlan } from "./dispatch-plan.ts";
import { type Floats, floatsLike } from "./routing.ts";
import { requireInteger, requireLength } from "./shape.ts";

/** Rows of tokens `x` [T, hidden] in expert order; padding rows are 0. */
export function dispatchRows(plan: DispatchPlan, x: Floats, hidden: number): Floats {
  checkTokens(plan, "x", x, hidden);
  return gatherRows(x, hidden, plan.expertSlots, plan.topK);
}

/**
 * Rows `source[⌊index[i] / divide⌋]` one after the other; 0 for an index of −1. With
 * `plan.sendSlots` and topK it fills send buffers.
 */
export function gatherRows(source: Floats, hidden: number, index: Int32Array, divide = 1): Floats {
  requireInteger("hidden", hidden, 1);
  requireInteger("divide", divide, 1);
  const out = floatsLike(source, index.length * hidden);
  for (let i = 0; i < index.length; i++) {
    if (index[i]! < 0) continue;
    const from = Math.floor(index[i]! / divide) * hidden;
    if (from + hidden > source.length) throw noRow(index, i, divide, source.length / hidden);
    const to = i * hidden;
    for (let c = 0; c < hidden; c++) out[to + c] = source[from + c]!;
  }
  return out;
}

/**
 * Tokens [T, hidden] as the weighted sums of their experts' rows `y` in expert order; a token
 * without experts is 0. Without `weights` [T, k] every weight is 1.
 */
export function combineRows(
  plan: DispatchPlan,
  y: Floats,
  hidden: number,
  weights?: Floats,
): Floats {
  checkExpertRows(plan, "y", y, hidden);
  if (weights !== undefined) checkSlots(plan, "weights", weights);
  const out = floatsLike(y, plan.tokens * hidden);
  for (let slot = 0; slot < plan.expertRows.length; slot++) {
    const row = plan.expertRows[slot]!;
    if (row < 0) continue;
    const from = row * hidden;
    const to = Math.floor(slot / plan.topK) * hidden;
    const w = weights === undefined ? 1 : weights[slot]!;
    for (let c = 0; c < hidden; c++) out[to + c]! += w * y[from + c]!;
  }
  return out;
}

/** Gradient of `dispatchRows`: that of the tokens, from that of the rows in expert order. */
export function dispatchRowsGradient(plan: DispatchPlan, gradient: Floats, hidden: number): Floats {
  return combineRows(plan, gradient, hidden);
}

/** Gradients of `combineRows`, from that of its result: those of the rows and of the weights. */
export function combineRowsGradient(
  plan: DispatchPlan,
  gradient: Floats,
  y: Floats,
  hidden: number,
  weights: Floats,
): { readonly rows: Floats; readonly weights: Floats } {
  checkTokens(plan, "gradient", gradient, hidden);
  checkExpertRows(plan, "y", y, hidden);
  checkSlots(plan, "weights", weights);
  const rows = floatsLike(y, y.length);
  const slots = floatsLike(weights, weights.length);
  for (let slot = 0; slot < plan.expertRows.length; slot++) {
    const row = plan.expertRows[slot]!;
    if (row < 0) continue;
    const at = row * hidden;
    const token = Math.floor(slot / plan.topK) * hidden;
    const w = weights[slot]!;
    let dot = 0;
    for (let c = 0; c < hidden; c++) {
      rows[at + c] = w * gradient[token + c]!;
      dot += gradient[token + c]! * y[at + c]!;
    }
    slots[slot] = dot;
  }
  return { rows, weights: slots };
}

function checkTokens(plan: DispatchPlan, name: string, x: Floats, hidden: number): void {
  requireInteger("hidden", hidden, 1);
  requireLength(name, x, plan.tokens * hidden, `${plan.tokens} tokens x ${hidden}`);
}

function checkExpertRows(plan: DispatchPlan, name: string, y: Floats, hidden: number): void {
  requireInteger("hidden", hidden, 1);
  const rows = plan.expertSlots.length;
  requireLength(name, y, rows * hidden, `${rows} expert rows x ${hidden}`);
}

function checkSlots(plan: DispatchPlan, name: string, weights: Floats): void {
  requireLength(name, weights, plan.expertRows.length, `${plan.tokens} tokens x top-${plan.topK}`);
}

function noRow(index: Int32Array, i: number, divide: number, rows: number): TriremeError {
  return new TriremeError(
    "MOE_SHAPE",
    `index ${i} is ${index[i]}, row ${Math.floor(index[i]! / divide)} of a source that has ${Math.floor(rows)}; rows are counted from 0, and -1 is none`,
  );
}
