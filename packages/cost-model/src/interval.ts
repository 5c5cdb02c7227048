/**
 * How far a prediction may be off. The factors are the 10 % and 90 % quantiles of measured over
 * predicted over half of the published measurements that the model is compared with (the idea of split conformal
 * prediction); `pnpm validate` tells for the other half whether four in five are inside. They are wide because a source seldom
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

/** By kind and architecture; `gpu` where an architecture has too few measurements of its own. */
const factors: Readonly<Record<PredictedKind, Readonly<Record<string, Factors>>>> = {
  step: {
    ampere: [0.89, 1.2],
    hopper: [0.93, 1.17],
    blackwell: [0.98, 1.41],
    "blackwell-ultra": [0.98, 1.41],
  },
  // Software of a year apart runs the same layout at half and twice the speed.
  "expert-step": { gpu: [0.87, 1.34] },
  memory: { gpu: [0.81, 1.1] },
  gemm: { gpu: [0.77, 1] },
  "grouped-gemm": { gpu: [0.86, 1.22] },
  attention: { gpu: [0.89, 1.11] },
  collective: {
    gpu: [0.95, 1.14],
    volta: [0.93, 1.16],
    ampere: [0.98, 1.1],
    hopper: [0.88, 1.02],
    blackwell: [0.95, 1.15],
  },
};

/** The interval of a prediction of `value` on a device. */
export function interval(kind: PredictedKind, value: number, a: Accelerator): Interval {
  const known = factors[kind];
  const [low, high] = known[a.architecture] ?? known[a.kind] ?? unknown;
  return { low: value * low, high: value * high };
}
