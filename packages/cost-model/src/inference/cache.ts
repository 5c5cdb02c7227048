/** Keys and values kept for the tokens to come, or states: bytes, and what reads them. */
import type { Bytes } from "@trireme/core";
import {
  type LayerForm,
  type Model,
  type Operator,
  type Scan,
  isScan,
  scanWidths,
  stateSize,
} from "@trireme/workload";

/**
 * Keys and values of one token in one layer on one of `tp` ranks; with multi-head latent attention the latent, on every
 * rank.
 */
export function cacheBytesPerToken(m: Model, tp: number, element: Bytes): Bytes {
  if (m.latent !== undefined) return (m.latent.keyValueRank + m.latent.ropeDim) * element;
  // Fewer heads than ranks: a head is kept more than once.
  return 2 * Math.ceil(m.kvHeads / tp) * m.headDim * element;
}

/** Tokens that a layer keeps of a sequence of `tokens`: of what does not attend none. */
export function cachedTokens(m: Model, form: LayerForm, tokens: number): number {
  if (form.mixer !== "attention") return 0;
  return form.windowed ? Math.min(tokens, m.window!.size) : tokens;
}

/**
 * Attention of `queries` new tokens of each of `batch` sequences to `cached` tokens, one kernel: the cache is read once
 * (FlashDecoding), whatever the queries. Latents are attended to as they are, with the projections absorbed
 * (DeepSeek-V2, §2.1.2).
 */
export function cachedAttention(
  m: Model,
  o: {
    readonly tp: number;
    readonly batch: number;
    readonly queries: number;
    readonly cached: number;
    readonly element: Bytes;
  },
): Operator {
  const { tp, batch, queries, cached, element } = o;
  const heads = m.heads / tp;
  const kvHeads = m.latent === undefined ? Math.ceil(m.kvHeads / tp) : 1;
  const keys = m.latent === undefined ? m.headDim : m.latent.keyValueRank + m.latent.ropeDim;
  const values = m.latent === undefined ? m.headDim : m.latent.keyValueRank;
  const shape = [batch, heads, kvHeads, cached, keys];
  const form = `flash-decode${queries}${m.latent === undefined ? "" : "-latent"}`;
  return {
    key: `attention/${form}/forward/${shape.join("x")}/${element}`,
    kind: "attention",
    form,
    pass: "forward",
    shape,
    flops: 2 * batch * heads * queries * cached * (keys + values),
    bytes:
      batch * cached * cacheBytesPerToken(m, tp, element) +
      2 * batch * queries * heads * (keys + values),
    count: 1,
  };
}

/**
 * What a scanning layer keeps of a sequence, however long, on one of `tp` ranks: its state in 32 bits, and the last
 * inputs of its convolution.
 */
export function stateBytes(m: Model, form: LayerForm, tp: number, element: Bytes): Bytes {
  if (!isScan(form.mixer)) return 0;
  const { taps, convolved } = scanWidths(m, form.mixer);
  return (4 * stateSize(m, form.mixer) + (taps - 1) * convolved * element) / tp;
}

/**
 * The scan of `queries` new tokens of each of `batch` sequences from its state, one kernel (Mamba-2's
 * selective_state_update, the recurrent form of a delta rule): the state is read and written once.
 */
export function stateUpdate(
  m: Model,
  scan: Scan,
  o: { readonly tp: number; readonly batch: number; readonly queries: number },
): Operator {
  const { tp, batch, queries } = o;
  const numbers = (batch * stateSize(m, scan)) / tp;
  const shape = [batch, stateSize(m, scan) / tp, queries, 0];
  const form = `${scan}-state`;
  return {
    key: `scan/${form}/forward/${shape.join("x")}`,
    kind: "scan",
    form,
    pass: "forward",
    shape,
    flops: 8 * numbers * queries,
    bytes: 8 * numbers,
    count: 1,
  };
}
