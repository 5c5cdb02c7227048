/**
 * Learning-rate schedules: pure functions of the step. Linear warm-up, then one of
 * - constant;
 * - cosine (Loshchilov, Hutter: SGDR, ICLR 2017, equation 5, one period), as in nanoGPT;
 * - linear;
 * - inverse-sqrt (Vaswani et al.: Attention Is All You Need, 2017, equation 3): the peak times the
 *   root of warm-up over step;
 * - wsd: warm-up, stable, decay (Hu et al.: MiniCPM, 2024, section 4), with the decays of Hägele et
 *   al., NeurIPS 2024: linear, cosine, or one minus the root of the share of the decay that is over.
 */
import { TriremeError } from "@trireme/core";

/** A schedule; `ResolvedOptimizer` has all of it but `steps`. */
export interface LearningRateOptions {
  readonly schedule: "constant" | "cosine" | "linear" | "inverse-sqrt" | "wsd";
  /** The peak. */
  readonly learningRate: number;
  /** Where decay ends, at step `steps`, and the floor of inverse-sqrt; default 0. */
  readonly minimumLearningRate?: number;
  /** Steps of warm-up; the peak is reached in the step after them. */
  readonly warmup: number;
  /** Last steps in which `wsd` decays; default a fifth of `steps`. */
  readonly decay?: number;
  /** How `wsd` decays; default linear. */
  readonly decayShape?: "linear" | "cosine" | "sqrt";
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
  if (options.schedule === "inverse-sqrt") {
    return Math.max(minimum, peak * Math.sqrt((warmup + 1) / (step + 1)));
  }
  return minimum + (peak - minimum) * share(options, step);
}

/** How much of the way from minimum to peak is left, 1 at the end of warm-up. */
function share(options: LearningRateOptions, step: number): number {
  const { schedule, warmup, steps, decay = Math.max(1, Math.round(steps / 5)) } = options;
  if (schedule === "constant") return 1;
  if (schedule === "wsd") {
    const over = progress(step, Math.max(warmup, steps - decay), steps);
    return fall(options.decayShape ?? "linear", over);
  }
  return fall(schedule === "cosine" ? "cosine" : "linear", progress(step, warmup, steps));
}

/** From 1 to 0 as a share of the way, 0 to 1, gets over. */
function fall(shape: "linear" | "cosine" | "sqrt", over: number): number {
  if (shape === "cosine") return (1 + Math.cos(Math.PI * over)) / 2;
  return shape === "sqrt" ? 1 - Math.sqrt(over) : 1 - over;
}

/** Position of `step` between two steps, in 0..1. */
function progress(step: number, from: number, to: number): number {
  return to <= from ? (step < to ? 0 : 1) : Math.min(1, Math.max(0, (step - from) / (to - from)));
}
