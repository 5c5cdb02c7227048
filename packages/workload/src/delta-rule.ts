/**
 * The gated delta rule by chunks (Yang et al., arXiv 2412.06464 §3.3, arXiv 2406.06484 §3) in the kernels of
 * flash-linear-attention (chunk_gated_delta_rule): keys with keys and the inverse of that triangle, which makes of keys
 * and values w and u; the state from chunk to chunk, in order; the output of the state and of the chunk's own scores.
 * Backward computes w, u and the states again. Queries and keys are normalised first, and repeated to the heads of the
 * values.
 */
import type { DeltaNet } from "./model.ts";
import type { OperatorList } from "./operator-list.ts";
import type { Pass } from "./operator.ts";

/**
 * Appends forward, recomputation and backward; `tokens` are the rank's, but every head of the rule has all of the
 * sequence.
 */
export function deltaRule(d: DeltaNet, list: OperatorList, tokens: number): void {
  const { tp, cp, microbatch, sequence } = list.plan;
  const e = list.element;
  list.norm("rmsnorm", (2 * tokens * d.keyHeads) / tp, d.keyDim);
  const q = Math.min(d.chunk, sequence);
  const heads = d.valueHeads / tp / cp;
  const sequences = microbatch * heads;
  const chunks = sequences * Math.ceil(sequence / q);
  const half = Math.ceil(q / 2);
  const long = Math.ceil(sequence / q) * q;
  const { keyDim: k, valueDim: v } = d;
  const row = e * chunks * q;
  const [keys, values] = [row * k, row * v];
  const triangle = 4 * chunks * q * q;
  const states = e * chunks * k * v;
  const push = (pass: Pass, form: string, shape: readonly number[], bytes: number): void => {
    list.scan(`delta-${form}`, pass, shape, bytes);
  };
  const updates = (pass: Pass): void => {
    push(pass, "updates", [chunks, q, k + v, q], row * q + 2 * (keys + values));
  };
  // In order: a chunk's state follows from the one before, by two products; the form says the inner width of a step.
  const carry = (pass: Pass): void => {
    push(pass, `carry${2 * q}`, [sequences, v, k, 2 * long], 2 * keys + 2 * values + states);
  };
  const shared = d.keyHeads < d.valueHeads;
  const forward = (pass: Pass): void => {
    if (shared) push(pass, "repeat", [chunks, q, k, 0], 2 * keys * (1 + d.keyHeads / d.valueHeads));
    push(pass, "triangle", [chunks, q, q, k], keys + triangle);
    push(pass, "inverse", [chunks, q, q, 0], triangle + row * q);
    updates(pass);
    carry(pass);
    push(pass, "scores", [chunks, q, q, k], 2 * keys);
    push(pass, "output", [chunks, q, v, k + half], states + 2 * values + keys);
  };
  forward("forward");
  if (list.recomputesScan) forward("recompute");
  const back: Pass = "input-gradient";
  updates(back);
  carry(back);
  push(back, "scores", [chunks, q, q, k], 2 * keys);
  push(back, "values", [chunks, q, v, half], 2 * values);
  push(back, `carry-gradient${3 * q}`, [sequences, v, k, 3 * long], 3 * keys + 3 * values + states);
  // Queries, keys and w from the states, queries and keys from the scores: by blocks of 64 of their width, each with
  // its own scores.
  const blocks = Math.ceil(k / 64);
  push(back, "score-gradient", [blocks * chunks, q, q, v], 2 * blocks * values);
  push(back, "keys", [chunks, q, k, 3 * v + q], 2 * states + 6 * keys + 2 * values);
  // Through w, u and the inverse back to keys and values.
  push(back, "triangle-gradient", [chunks, q, q, k + v + q], 2 * (keys + values) + triangle);
  push(back, "updates-gradient", [chunks, q, k + v, q + half], row * q + 3 * (keys + values));
  // Both parts of the keys' gradients are summed, and those of heads that share keys.
  push(back, "sum", [chunks, q, k, 0], 3 * keys);
  if (shared) push(back, "sum", [chunks, q, k, 0], 2 * keys * (1 + d.keyHeads / d.valueHeads));
}
