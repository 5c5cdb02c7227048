/** Low-rank adapters (LoRA, arXiv 2106.09685 §4): beside W [out, in], B [out, rank] A [rank, in]. */
import { type AdapterTarget, type Model, isGated } from "./model.ts";

/** Features of a matrix that may be adapted; row-parallel ones are split over tp by input. */
export interface AdaptedMatrix {
  readonly target: AdapterTarget;
  readonly inner: number;
  readonly out: number;
  readonly rowParallel: boolean;
}

/** The adapted matrices of one layer. */
export function adaptedMatrices(m: Model): readonly AdaptedMatrix[] {
  if (m.adapter === undefined) return [];
  const keys = m.kvHeads * m.headDim;
  const values = m.heads * (m.latent?.valueDim ?? m.headDim);
  const all: readonly (readonly [AdapterTarget, number, number, boolean])[] = [
    ["query", m.hidden, m.heads * m.headDim, false],
    ["key", m.hidden, keys, false],
    ["value", m.hidden, keys, false],
    ["output", values, m.hidden, true],
    ["gate", m.hidden, m.ffn, false],
    ["up", m.hidden, m.ffn, false],
    ["down", m.ffn, m.hidden, true],
  ];
  return all
    .filter(([target]) => m.adapter!.targets.includes(target))
    .filter(([target]) => target !== "gate" || isGated(m.activation))
    .map(([target, inner, out, rowParallel]) => ({ target, inner, out, rowParallel }));
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
  for (const { inner, out, rowParallel } of adaptedMatrices(m)) {
    sharded += m.adapter!.rank * (rowParallel ? inner : out);
    replicated += m.adapter!.rank * (rowParallel ? out : inner);
  }
  return { total: sharded + replicated, sharded, replicated };
}
