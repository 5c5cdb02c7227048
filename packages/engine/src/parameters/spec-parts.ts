/** What the tensors of a layer are made of: matrices and vectors, and the part of each that a rank holds. */
import type { Model } from "@trireme/workload";
import type { ParameterSpec } from "./parameter.ts";
import type { Slice } from "../memory/slice.ts";

/** Standard deviation of fresh weights (Radford et al., GPT-2, 2019). */
const deviation = 0.02;

/** A rank's place among those that share out each layer. */
export interface Share {
  readonly rank: number;
  readonly ranks: number;
}

/** One rank that holds all. */
export const alone: Share = { rank: 0, ranks: 1 };

/** Two residual branches a layer: their sum keeps the variance of one (GPT-2, section 2.3). */
export function lastSpread({ layers }: Pick<Model, "layers">): number {
  return deviation / Math.sqrt(2 * layers);
}

/** Parts that lie side by side, each cut evenly. */
interface Columns {
  readonly total: number;
  readonly ranges: Slice["ranges"];
}

export function evenly({ rank, ranks }: Share, widths: readonly number[]): Columns {
  let total = 0;
  const ranges = widths.map((width) => {
    const count = width / ranks;
    total += width;
    return { start: total - width + rank * count, count };
  });
  return { total, ranges };
}

export function split(share: Share, dim: number, ranges: Slice["ranges"]): Slice | undefined {
  return share.ranks === 1 ? undefined : { dim, ranges };
}

/** A product whose output columns, and their biases, are shared out. */
export function splitColumns(
  name: string,
  inputs: number,
  outputs: number,
  { ranges }: Columns,
  share: Share,
  biased: boolean,
): ParameterSpec[] {
  const weight = matrix(`${name}.weight`, [inputs, outputs], split(share, 1, ranges));
  if (!biased) return [weight];
  return [weight, constant(`${name}.bias`, outputs, 0, split(share, 0, ranges))];
}

/** A product whose input rows are shared out; its bias is added once, to the sum. */
export function splitRows(
  name: string,
  inputs: number,
  outputs: number,
  share: Share,
  biased: boolean,
  spread: number,
): ParameterSpec[] {
  const { ranges } = evenly(share, [inputs]);
  const weight = matrix(`${name}.weight`, [inputs, outputs], split(share, 0, ranges), spread);
  return biased ? [weight, constant(`${name}.bias`, outputs, 0)] : [weight];
}

/** A feed-forward block: columns of its first product and rows of its second are shared out. */
export function feedForward(
  model: Model,
  name: string,
  ffn: number,
  share: Share,
): ParameterSpec[] {
  const { hidden, bias, activation } = model;
  const inner = evenly(share, activation === "swiglu" ? [ffn, ffn] : [ffn]);
  return [
    ...splitColumns(`${name}.c_fc`, hidden, inner.total, inner, share, bias),
    ...splitRows(`${name}.c_proj`, ffn, hidden, share, bias, lastSpread(model)),
  ];
}

export function matrix(
  name: string,
  dims: readonly number[],
  slice?: Slice,
  spread: number = deviation,
): ParameterSpec {
  return { name, dims, slice, initial: { deviation: spread }, decays: true };
}

export function constant(name: string, size: number, value: number, slice?: Slice): ParameterSpec {
  return { name, dims: [size], slice, initial: { constant: value }, decays: false };
}
