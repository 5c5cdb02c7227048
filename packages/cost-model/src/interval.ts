/**
 * How far a prediction may be off. The factors are the tenth and the ninetieth per cent of measured over predicted over
 * the published measurements that the model is compared with (the idea of split conformal prediction); `pnpm validate`
 * reads them off, and judges each half of the rows by the factors of the other. They are wide because a source seldom
 * states its clocks, its software and its stragglers; measuring a device narrows them.
 */
import type { Accelerator } from "@trireme/topology";

/** What was predicted: a step, a step of a model with experts, the peak of its memory, or one operation alone. */
export type PredictedKind =
  | "step"
  | "expert-step"
  | "memory"
  | "gemm"
  | "grouped-gemm"
  | "attention"
  | "collective";

/** Where four in five measurements lie, in the prediction's unit. */
export interface Interval {
  readonly low: number;
  readonly high: number;
}

/** Measured over predicted, rounded outwards to 0.01 and taken to hold the prediction itself. */
type Factors = readonly [number, number];

/** Where nothing was compared: wider than any device that was. */
const unknown: Factors = [0.7, 1.6];

/** Of single and of grouped products, which run on the same kernels. */
const products: Readonly<Record<string, Factors>> = { gpu: [0.84, 1.16] };

/** By kind and architecture; `gpu` where an architecture has fewer than 50 measurements of its own. */
const factors: Readonly<Record<PredictedKind, Readonly<Record<string, Factors>>>> = {
  step: { gpu: [0.89, 1.18], ampere: [0.89, 1.18], hopper: [0.9, 1.11], blackwell: [0.89, 1.27] },
  // Software of a year apart runs the same layout at half and twice the speed.
  "expert-step": { gpu: [0.89, 1.37], hopper: [0.95, 1.35], blackwell: [0.87, 1.42] },
  memory: { gpu: [0.86, 1.09], hopper: [0.86, 1.09] },
  gemm: products,
  "grouped-gemm": products,
  attention: { gpu: [0.89, 1.11], hopper: [0.89, 1.11] },
  collective: { gpu: [0.93, 1.12], volta: [0.93, 1.15], ampere: [0.97, 1.12] },
};

/** The interval of a prediction of `value` on a device. */
export function interval(kind: PredictedKind, value: number, a: Accelerator): Interval {
  const known = factors[kind];
  const [low, high] = known[a.architecture] ?? known[a.kind] ?? unknown;
  return { low: value * low, high: value * high };
}
