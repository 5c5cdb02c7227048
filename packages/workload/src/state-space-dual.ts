/**
 * The scan of Mamba-2 by chunks (SSD, arXiv 2405.21060 §6 and Listing 1) in the kernels of its authors' library
 * (ssd_combined.py and what it calls): inside chunks scores C Bᵀ and their product with x, between chunks states Bᵀ x,
 * their decay from chunk to chunk, and C times the state that a chunk begins with. Backward computes scores and states
 * again. States and scores are in 32 bits.
 */
import type { Mamba } from "./model.ts";
import type { OperatorList } from "./operator-list.ts";
import type { Pass } from "./operator.ts";

/** Appends forward, recomputation and backward; every head has all tokens of the sequence. */
export function stateSpaceDual(s: Mamba, list: OperatorList): void {
  const { tp, cp, microbatch, sequence } = list.plan;
  const e = list.element;
  const q = Math.min(s.chunk, sequence);
  const chunks = microbatch * Math.ceil(sequence / q);
  const heads = s.heads / tp / cp;
  // Fewer groups than ranks: heads on several of them share one.
  const groups = Math.max(1, s.groups / tp / cp);
  const { headDim: p, stateDim: n } = s;
  const tokens = chunks * q;
  const values = e * tokens * heads * p;
  const keys = e * tokens * groups * n;
  const scores = 4 * tokens * q * groups;
  // Each head reads those in front of the diagonal anew: together they are larger than a cache.
  const scoresOfHeads = 2 * tokens * q * heads;
  const states = 4 * chunks * heads * p * n;
  const push = (pass: Pass, form: string, shape: readonly number[], bytes: number): void => {
    list.scan(`ssd-${form}`, pass, shape, bytes);
  };
  // Of the chunk's pairs those behind the diagonal are left out.
  const pairs = Math.ceil(q / 2);
  const carry = (pass: Pass, form: string, bytes: number): void => {
    push(pass, form, [chunks * heads, p, n, 0], bytes);
  };
  const inward = (pass: Pass): void => {
    push(pass, "scores", [chunks * groups, q, q, n], 2 * keys + scores);
    push(pass, "states", [chunks * heads, p, n, q], values + keys + states);
    carry(pass, "carry", states + (e / 4) * states);
  };
  const forward = (pass: Pass): void => {
    inward(pass);
    const read = values + scoresOfHeads + keys + (e / 4) * states;
    push(pass, "output", [chunks * heads, q, p, n + pairs], read + values);
  };
  forward("forward");
  if (list.recomputesScan) forward("recompute");
  const back: Pass = "input-gradient";
  inward(back);
  push(back, "output-states", [chunks * heads, p, n, q], values + keys + states);
  carry(back, "carry-gradient", (2 + e / 4) * states);
  push(
    back,
    "values",
    [chunks * heads, q, p, n + pairs],
    3 * values + scoresOfHeads + keys + states,
  );
  // Keys and queries: of each head, summed over those of a group.
  push(back, "keys", [chunks * heads, q, n, p], values + keys + states);
  push(back, "queries", [chunks * heads, q, n, p], values + keys + (e / 4) * states);
  push(back, "score-gradient", [chunks * heads, q, q, Math.ceil(p / 2)], 2 * values + 2 * scores);
  for (const form of ["keys-inside", "queries-inside"]) {
    push(back, form, [chunks * groups, q, n, q], scores + 2 * keys);
  }
  // Decays: scores times gradients once more.
  push(back, "decay", [chunks * heads, q, q, Math.ceil(p / 2)], 2 * values + scoresOfHeads);
}
