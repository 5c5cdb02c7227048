/**
 * Learning-rate schedules: pure functions of the step. Linear warm-up, then one of
 * - constant;
 * - cosine (Loshchilov, Hutter: SGDR, ICLR 2017, equation 5, one period), as in nanoGPT;
 * - linear;
 * - wsd: warm-up, stable, decay (Hu et al.: MiniCPM, 2024, section 4; here with the linear decay of
 *   Hägele et al., NeurIPS 2024).
 */
import { TriremeError } from "@trireme/core";

/** A schedule; `ResolvedOptimizer` has all of it but `steps`. */
export interface LearningRateOptions {
  readonly schedule: "constant" | "cosine" | "linear" | "wsd";
  /** The peak. */
  readonly learningRate: number;
  /** Where decay ends, at step `steps`; default 0. */
  readonly minimumLearningRate?: number;
  /** Steps of warm-up; the peak is reached in the step after them. */
  readonly warmup: number;
  /** Last steps in which `wsd` decays; default a fifth of `steps`. */
  readonly decay?: number;
  /** Steps of the run. */
  readonly steps: number;
}

/**
 * The learning rate of a step, counted from 0; beyond the last step it stays at the minimum.
 * @throws TriremeError "RANGE" when the step is no integer from 0 up.
 */
export function learningRate(options: LearningRateOptions, step: number): number {
  if (!Number.isSafeInteger(step) || step < 0) {
    throw new TriremeError("RANGE", `step ${step} must be an integer from 0 up`);
  }
  const { learningRate: peak, minimumLearningRate: minimum = 0, warmup } = options;
  // Never 0, so that no step is wasted.
  if (step < warmup) return (peak * (step + 1)) / (warmup + 1);
  return minimum + (peak - minimum) * share(options, step);
}

/** How much of the way from minimum to peak is left, 1 at the end of warm-up. */
function share(options: LearningRateOptions, step: number): number {
  const { schedule, warmup, steps, decay = Math.max(1, Math.round(steps / 5)) } = options;
  switch (schedule) {
    case "constant":
      return 1;
    case "cosine":
      return (1 + Math.cos(Math.PI * progress(step, warmup, steps))) / 2;
    case "linear":
      return 1 - progress(step, warmup, steps);
    case "wsd":
      break;
  }
  return 1 - progress(step, Math.max(warmup, steps - decay), steps);
}

/** Position of `step` between two steps, in 0..1. */
function progress(step: number, from: number, to: number): number {
  return to <= from ? (step < to ? 0 : 1) : Math.min(1, Math.max(0, (step - from) / (to - from)));
}
