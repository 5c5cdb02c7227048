/** Low-rank adapters (LoRA, arXiv 2106.09685 §4): beside W [out, in], B [out, rank] A [rank, in]. */
import { type AdapterTarget, type Model, isGated } from "./model.ts";

/** A matrix that is adapted, over all ranks. */
export interface AdaptedMatrix {
  readonly target: AdapterTarget;
  readonly inner: number;
  readonly out: number;
  /** What tensor-parallel ranks share out: its results, its inputs, or nothing. */
  readonly split: "out" | "inner" | "none";
}

/** The adapted matrices of one layer. */
export function adaptedMatrices(m: Model): readonly AdaptedMatrix[] {
  if (m.adapter === undefined) return [];
  const { targets } = m.adapter;
  return matrices(m).filter(({ target }) => targets.includes(target));
}

/** Every matrix of a layer that an adapter may be added to, with what it is computed beside. */
export function matrices(m: Model): readonly AdaptedMatrix[] {
  const list: AdaptedMatrix[] = [];
  const add = (
    target: AdapterTarget,
    inner: number,
    out: number,
    split: AdaptedMatrix["split"],
  ): void => {
    list.push({ target, inner, out, split });
  };
  const { hidden } = m;
  if (m.latent === undefined) {
    const keys = m.kvHeads * m.headDim;
    // A gate on attention lies beside the queries.
    const queries = (m.attentionGate ? 2 : 1) * m.heads * m.headDim;
    add("query", hidden, queries, "out");
    add("key", hidden, keys, "out");
    add("value", hidden, keys, "out");
    add("qkv", hidden, queries + 2 * keys, "out");
  } else {
    const { queryRank, keyValueRank, nopeDim, ropeDim, valueDim } = m.latent;
    const query = m.heads * m.headDim;
    if (queryRank === 0) {
      add("query", hidden, query, "out");
    } else {
      add("query-down", hidden, queryRank, "none");
      add("query-up", queryRank, query, "out");
    }
    add("key-value-down", hidden, keyValueRank + ropeDim, "none");
    add("key-value-up", keyValueRank, m.heads * (nopeDim + valueDim), "out");
  }
  add("output", m.heads * (m.latent?.valueDim ?? m.headDim), hidden, "inner");
  if (m.experts !== undefined) return list;
  add("up", hidden, m.ffn, "out");
  if (isGated(m.activation)) {
    add("gate", hidden, m.ffn, "out");
    add("gate-up", hidden, 2 * m.ffn, "out");
  }
  add("down", m.ffn, hidden, "inner");
  return list;
}

/** What adapters leave of training a layer's own matrices: nothing; and how these are kept meanwhile. */
export function frozen(m: Model): {
  readonly frozen?: boolean;
  readonly base?: NonNullable<Model["adapter"]>["base"];
} {
  return m.adapter === undefined ? {} : { frozen: true, base: m.adapter.base };
}

/** Adapter parameters of one layer: the side that meets the split dimension is split, the other is on every rank. */
export function adapterParameters(m: Model): {
  readonly total: number;
  readonly sharded: number;
  readonly replicated: number;
} {
  let sharded = 0;
  let replicated = 0;
  for (const { inner, out, split } of adaptedMatrices(m)) {
    const side = { out, inner, none: 0 }[split];
    sharded += m.adapter!.rank * side;
    replicated += m.adapter!.rank * (inner + out - side);
  }
  return { total: sharded + replicated, sharded, replicated };
}
